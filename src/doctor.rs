//! `lamina doctor`: does this machine have what Lamina needs?

use crate::door::{CHECK_FAILED, DONE, Outcome};
use serde::Serialize;

/// Arguments of `lamina doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  lamina doctor")]
pub(crate) struct Args {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    what: String,
    good: bool,
    needed: bool,
    says: String,
    hint: Option<String>,
}

/// Elements the encoder and the player are built from, and Debian's package of each.
const ELEMENTS: [(&str, &str); 14] = [
    ("appsrc", "gstreamer1.0-plugins-base"),
    ("decodebin3", "gstreamer1.0-plugins-base"),
    ("videoconvert", "gstreamer1.0-plugins-base"),
    ("audioconvert", "gstreamer1.0-plugins-base"),
    ("audioresample", "gstreamer1.0-plugins-base"),
    ("qtdemux", "gstreamer1.0-plugins-good"),
    ("videoflip", "gstreamer1.0-plugins-good"),
    ("h264parse", "gstreamer1.0-plugins-bad"),
    ("aacparse", "gstreamer1.0-plugins-good"),
    ("fakevideosink", "gstreamer1.0-plugins-bad"),
    ("x264enc", "gstreamer1.0-plugins-ugly"),
    ("avdec_h264", "gstreamer1.0-libav"),
    ("avdec_aac", "gstreamer1.0-libav"),
    ("avenc_aac", "gstreamer1.0-libav"),
];

pub(crate) fn run(args: &Args) -> Outcome {
    let mut findings = Vec::new();
    match gstreamer::init() {
        Ok(()) => {
            findings.push(good("GStreamer", gstreamer::version_string().to_string()));
            findings.extend(ELEMENTS.iter().map(|(element, package)| element_there(element, package, true)));
            findings.push(element_there("ximagesink", "gstreamer1.0-x", false));
        }
        Err(error) => findings.push(bad(
            "GStreamer",
            error.to_string(),
            "apt-get install gstreamer1.0-plugins-base gstreamer1.0-plugins-good",
        )),
    }
    findings.push(good("libvpx", codec::libvpx_version()));
    findings.push(socket_buffers());
    let well = findings.iter().all(|finding| finding.good || !finding.needed);
    tell(&findings, args.json)?;
    Ok(if well { DONE } else { CHECK_FAILED })
}

fn good(what: impl Into<String>, says: impl Into<String>) -> Finding {
    Finding { what: what.into(), good: true, needed: true, says: says.into(), hint: None }
}

fn bad(what: impl Into<String>, says: impl Into<String>, hint: impl Into<String>) -> Finding {
    Finding { what: what.into(), good: false, needed: true, says: says.into(), hint: Some(hint.into()) }
}

fn element_there(element: &str, package: &str, needed: bool) -> Finding {
    if gstreamer::ElementFactory::find(element).is_some() {
        good(element, "there")
    } else {
        let hint = format!("apt-get install {package}");
        Finding { needed, ..bad(element, "missing", hint) }
    }
}

/// Linux grants at most `net.core.rmem_max`; smaller buffers only cost speed.
fn socket_buffers() -> Finding {
    let wanted = transport::SOCKET_BUFFER_BYTES;
    let granted = transport::granted_socket_buffer();
    let what = "socket buffers";
    match granted {
        Ok(bytes) if bytes >= wanted => good(what, format!("{bytes} bytes")),
        Ok(bytes) => Finding {
            needed: false,
            ..bad(
                what,
                format!("{bytes} bytes instead of {wanted}"),
                format!("sysctl -w net.core.rmem_max={wanted} net.core.wmem_max={wanted}"),
            )
        },
        Err(error) => bad(what, error.to_string(), "check that UDP sockets may be opened on loopback"),
    }
}

fn tell(findings: &[Finding], json: bool) -> anyhow::Result<()> {
    if json {
        outln!("{}", serde_json::to_string_pretty(findings)?);
        return Ok(());
    }
    for finding in findings {
        let mark = match (finding.good, finding.needed) {
            (true, _) => "ok     ",
            (false, true) => "MISSING",
            (false, false) => "note   ",
        };
        outln!("{mark}  {:<16} {}", finding.what, finding.says);
        if let Some(hint) = &finding.hint {
            outln!("         {:<16} hint: {hint}", "");
        }
    }
    Ok(())
}
