//! A browser without a window, driven as the W3C's `WebDriver` says, by plain HTTP to
//! Debian's `chromedriver`.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The name under which the W3C's answers carry an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// A browser with one page; ended when dropped.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    /// Starts a browser with a window of this size in pixels.
    pub fn start(width: u32, height: u32) -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is installed by ./x");
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.unwrap();
            line.trim_end_matches('.')
                .rsplit_once("successfully on port ")
                .and_then(|(_, port)| port.parse().ok())
        });
        // What else it says is nobody's business, but must be read.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let mut browser =
            Self { driver, port: port.expect("chromedriver says its port"), session: String::new() };
        let size = format!("--window-size={width},{height}");
        // Without a sandbox, which root may not have; without a window.
        let arguments =
            ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", &size];
        let wanted = json!({
            "browserName": "chrome",
            "goog:loggingPrefs": { "browser": "ALL" },
            "goog:chromeOptions": { "args": arguments },
        });
        let session = browser.ask("POST", "/session", &json!({"capabilities": {"alwaysMatch": wanted}}));
        session["sessionId"].as_str().expect("a session").clone_into(&mut browser.session);
        browser
    }

    /// Opens a page.
    pub fn open(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    /// What a script returns.
    pub fn js(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until a script returns something true, and gives that.
    pub fn until(&self, seconds: u64, script: &str) -> Value {
        let late = Instant::now() + Duration::from_secs(seconds);
        loop {
            let value = self.js(script);
            if !matches!(value, Value::Null | Value::Bool(false)) {
                return value;
            }
            assert!(
                Instant::now() < late,
                "not within {seconds} s: {script}\n{}",
                self.js("return window.lamina?.log.map((l) => `${l.at_ms} ${l.text}`)")
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A click where the element is.
    pub fn click(&self, selector: &str) {
        let element = self.find(selector);
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    /// Keys pressed while the element has the focus.
    pub fn press(&self, selector: &str, keys: &str) {
        let element = self.find(selector);
        self.post(&format!("/element/{element}/value"), &json!({ "text": keys }));
    }

    /// Gives the window another size.
    pub fn resize(&self, width: u32, height: u32) {
        self.post("/window/rect", &json!({ "width": width, "height": height }));
    }

    /// Writes what is seen as a PNG.
    pub fn screenshot(&self, path: &Path) {
        let text = self.ask("GET", &format!("/session/{}/screenshot", self.session), &Value::Null);
        std::fs::write(path, decoded(text.as_str().unwrap())).unwrap();
    }

    /// What the console was told since this was asked last, but for mere chatter.
    pub fn complaints(&self) -> Vec<String> {
        let lines = self.post("/se/log", &json!({ "type": "browser" }));
        let bad = |line: &&Value| matches!(line["level"].as_str(), Some("SEVERE" | "WARNING"));
        lines.as_array().unwrap().iter().filter(bad).map(ToString::to_string).collect()
    }

    fn find(&self, selector: &str) -> String {
        let found = self.post("/element", &json!({ "using": "css selector", "value": selector }));
        found[ELEMENT].as_str().expect(selector).to_owned()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", &format!("/session/{}{path}", self.session), body)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = request(self.port, method, path, &[], &body);
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        assert_eq!(status, 200, "{method} {path} {body}: {answer}");
        answer["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends with its session; without one there is none.
        let path = format!("/session/{}", self.session);
        if !self.session.is_empty() && !std::thread::panicking() {
            self.ask("DELETE", &path, &Value::Null);
        } else if !self.session.is_empty() {
            request(self.port, "DELETE", &path, &[], "");
        }
        self.driver.kill().ok();
        self.driver.wait().ok();
    }
}

/// One request by HTTP to this machine: the status and the body.
pub fn request(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let headers: String = headers.iter().flat_map(|(name, value)| [*name, ": ", *value, "\r\n"]).collect();
    let host = if headers.contains("Host: ") { String::new() } else { format!("Host: 127.0.0.1:{port}\r\n") };
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\n{host}Connection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut reader = BufReader::new(stream);
    let (mut length, mut status) = (0, 0);
    for number in 0.. {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if number == 0 {
            status = line.split(' ').nth(1).unwrap().parse().unwrap();
        } else if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        } else if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (status, String::from_utf8_lossy(&body).into_owned())
}

/// Bytes from base 64 (RFC 4648), as pictures come.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |letter: u8| match letter {
        b'A'..=b'Z' => u32::from(letter - b'A'),
        b'a'..=b'z' => u32::from(letter - b'a') + 26,
        b'0'..=b'9' => u32::from(letter - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u32> = text.trim_end_matches('=').bytes().map(digit).collect();
    let four = |part: &[u32]| {
        let number = (0..4).fold(0, |sum, n| sum << 6 | part.get(n).copied().unwrap_or(0));
        number.to_be_bytes()[1..part.len()].to_vec()
    };
    digits.chunks(4).flat_map(four).collect()
}
