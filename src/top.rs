//! `lamina top`: a whole network in a terminal, refreshed every second.

mod ask;
mod frame;
mod view;

use crate::door::{DONE, HintExt, Outcome, refuse};
use crate::operator::Keyring;
use crate::{address, running};
use anyhow::Context as _;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::collections::BTreeSet;
use std::io::{IsTerminal as _, stdout};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use view::{Answer, View};

/// How often the picture is drawn anew.
const EVERY: Duration = Duration::from_secs(1);
/// How often one looks whether a key was pressed or nobody waits for one.
const KEYS: Duration = Duration::from_millis(100);
/// How long `--once` waits for those who do not answer.
const ONCE: Duration = Duration::from_secs(6);
/// How long `--once` waits for further nodes once all have answered.
const SETTLED: Duration = Duration::from_millis(600);
/// The most nodes and proxies.
const MAX_ASKED: usize = 64;
/// The size of the picture that `--once` prints.
const PRINTED: (u16, u16) = (110, 40);

/// Arguments of `lamina top`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lamina top 127.0.0.1:4460
  lamina top 127.0.0.1:4460 127.0.0.1:4470
  lamina top 127.0.0.1:4460 --once
Asks the nodes and proxies that are named, and the neighbours that these name. `q` ends.")]
pub(crate) struct Args {
    /// Nodes and proxies: HOST or HOST:PORT
    #[arg(required = true, num_args = 1..=MAX_ASKED)]
    hosts: Vec<String>,
    #[command(flatten)]
    keyring: Keyring,
    /// Print one picture as text and end
    #[arg(long)]
    once: bool,
    /// Ask only those who are named
    #[arg(long)]
    alone: bool,
}

pub(crate) fn run(args: &Args) -> Outcome {
    if !args.once && !stdout().is_terminal() {
        return refuse("standard output is no terminal", "--once prints one picture as text");
    }
    let named: Vec<SocketAddr> =
        args.hosts.iter().map(|host| address::resolve(host)).collect::<Result<_, _>>()?;
    running::block_on(async {
        let network = Network::ask(&named, args);
        if args.once { once(network).await } else { watch(network).await }
    })
}

/// Everybody who is asked, and what they said.
struct Network {
    view: View,
    asked: BTreeSet<SocketAddr>,
    keyring: Keyring,
    alone: bool,
    answers: mpsc::Receiver<Answer>,
    sender: mpsc::Sender<Answer>,
}

impl Network {
    fn ask(named: &[SocketAddr], args: &Args) -> Self {
        let (sender, answers) = mpsc::channel(MAX_ASKED);
        let (keyring, alone) = (args.keyring.clone(), args.alone);
        let mut network =
            Self { view: View::default(), asked: BTreeSet::new(), keyring, alone, answers, sender };
        for address in named {
            network.also(*address);
        }
        network
    }

    fn also(&mut self, address: SocketAddr) {
        if self.asked.len() < MAX_ASKED && self.asked.insert(address) {
            self.view.expect(address);
            tokio::spawn(ask::again_and_again(address, self.keyring.clone(), self.sender.clone()));
        }
    }

    /// Takes an answer in, and asks whoever it names.
    fn hear(&mut self, answer: Answer) {
        let named = self.view.take(answer);
        if !self.alone {
            for address in named {
                self.also(address);
            }
        }
    }
}

/// The terminal, which is given back when this is dropped.
struct Screen(ratatui::DefaultTerminal);

impl Screen {
    fn take() -> anyhow::Result<Self> {
        // A panic gives it back too.
        Ok(Self(ratatui::try_init().context("the terminal cannot be drawn on").hint("--once prints text")?))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

async fn watch(mut network: Network) -> Outcome {
    let mut screen = Screen::take()?;
    let (pressed, mut keys) = mpsc::channel(8);
    let reader = tokio::task::spawn_blocking(move || read_keys(&pressed));
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stop = std::pin::pin!(running::asked_to_stop());
    loop {
        tokio::select! {
            Some(answer) = network.answers.recv() => {
                network.hear(answer);
                continue;
            }
            key = keys.recv() => match key {
                Some(Press::Other) => {}
                Some(Press::End) | None => break,
            },
            () = &mut stop => break,
            _ = tick.tick() => {}
        }
        screen
            .0
            .draw(|frame| frame::draw(frame, &network.view))
            .context("the terminal cannot be drawn on")?;
    }
    drop((screen, keys));
    reader.await.ok();
    Ok(DONE)
}

/// A key that was pressed.
enum Press {
    End,
    /// Another one, or another size of the window: draw again.
    Other,
}

/// Passes keys on until nobody waits for them.
fn read_keys(pressed: &mpsc::Sender<Press>) {
    while !pressed.is_closed() {
        let press = match event::poll(KEYS) {
            Ok(false) => continue,
            Ok(true) => event::read().map_or(Press::End, |event| meaning(&event)),
            Err(_) => Press::End,
        };
        if pressed.blocking_send(press).is_err() {
            return;
        }
    }
}

fn meaning(event: &Event) -> Press {
    let Event::Key(KeyEvent { code, modifiers, kind, .. }) = event else { return Press::Other };
    let control_c = *code == KeyCode::Char('c') && modifiers.contains(KeyModifiers::CONTROL);
    let ends = control_c || matches!(code, KeyCode::Char('q') | KeyCode::Esc);
    if ends && *kind == KeyEventKind::Press { Press::End } else { Press::Other }
}

/// Waits until everybody has answered, or long enough, and prints one picture.
async fn once(mut network: Network) -> Outcome {
    let late = Instant::now() + ONCE;
    let mut settled = late;
    loop {
        tokio::select! {
            Some(answer) = network.answers.recv() => {
                network.hear(answer);
                settled = if network.view.all_answered() { Instant::now() + SETTLED } else { late };
            }
            () = sleep_until(settled.min(late)) => break,
            () = running::asked_to_stop() => return Ok(DONE),
        }
    }
    let mut terminal = Terminal::new(TestBackend::new(PRINTED.0, PRINTED.1))?;
    terminal.draw(|frame| frame::draw(frame, &network.view))?;
    out!("{}", printed(&terminal));
    if network.view.nobody_answered() {
        return refuse("nobody answered", "`lamina status HOST` says why");
    }
    Ok(DONE)
}

/// The picture as lines, without what is empty at its ends.
fn printed(terminal: &Terminal<TestBackend>) -> String {
    let buffer = terminal.backend().buffer();
    let width = usize::from(buffer.area.width.max(1));
    let rows = buffer.content.chunks(width);
    let lines = rows.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>());
    let text = lines.map(|line| line.trim_end().to_owned() + "\n").collect::<String>();
    text.trim_end().to_owned() + "\n"
}
