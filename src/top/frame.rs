//! One picture of the network: totals, a table of nodes and proxies, what proxies'
//! viewers want, the last events.

use super::view::{Row, View, clients};
use crate::operator::Status;
use crate::status::{share, short};
use media::ByteCount;
use protocol::status::{NodeStatus, ProxyStatus};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row as TableRow, Table};

const HEADS: [&str; 10] =
    ["name", "level", "up", "slots", "vip", "normal", "standby", "enh", "sessions", "linked"];
/// Lines of events at least.
const EVENTS: u16 = 6;

/// Draws everything.
pub(super) fn draw(frame: &mut Frame, view: &View) {
    let rows = view.rows();
    let height = u16::try_from(rows.len()).unwrap_or(u16::MAX).saturating_add(2);
    let areas = Layout::vertical([Constraint::Length(1), Constraint::Max(height), Constraint::Min(EVENTS)]);
    let [head, table, events] = areas.areas(frame.area());
    frame.render_widget(Paragraph::new(totals(view)), head);
    frame.render_widget(nodes(&rows), table);
    let most = usize::from(events.height.saturating_sub(1));
    let block = Block::new().borders(Borders::TOP).title(" last events ");
    frame.render_widget(Paragraph::new(last(view, &rows, most)).block(block), events);
}

fn bold(text: String) -> Span<'static> {
    Span::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

fn totals(view: &View) -> Line<'static> {
    let totals = view.totals();
    let mut parts = vec![bold("lamina top".into()), Span::raw(format!("   {} answer", totals.answering))];
    if totals.silent > 0 {
        // By a word as well as by colour.
        let style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
        parts.push(Span::styled(format!(", {} SILENT", totals.silent), style));
    }
    parts.push(Span::raw(format!(
        "   watching: {} vip, {} normal, {} by proxy   standing by: {}   q ends",
        totals.vip, totals.normal, totals.clients, totals.standby
    )));
    Line::from(parts)
}

fn nodes<'a>(rows: &[(std::net::SocketAddr, &'a Row)]) -> Table<'a> {
    let widths = [
        Constraint::Length(17),
        Constraint::Length(7),
        Constraint::Length(9),
        Constraint::Length(13),
        Constraint::Length(5),
        Constraint::Length(7),
        Constraint::Length(8),
        Constraint::Length(5),
        Constraint::Length(9),
        Constraint::Min(12),
    ];
    let head = TableRow::new(HEADS).style(Style::new().add_modifier(Modifier::UNDERLINED));
    let lines = rows.iter().map(|(address, row)| {
        let (cells, level) = match &row.status {
            Some(Status::Node(node)) => (node_cells(node), node.level.to_string()),
            Some(Status::Proxy(proxy)) => (proxy_cells(proxy), "proxy".into()),
            None => (vec![address.to_string()], String::new()),
        };
        let silent = row.silent.is_some();
        let mut cells: Vec<Cell> = cells.into_iter().map(Cell::from).collect();
        if silent {
            cells.truncate(2);
            cells.push(Cell::from("SILENT"));
        }
        let style = if silent { Style::new().fg(Color::Red) } else { Style::new().fg(colour(&level)) };
        TableRow::new(cells).style(style)
    });
    Table::new(lines, widths).header(head).column_spacing(1)
}

fn colour(level: &str) -> Color {
    match level {
        "base" => Color::LightBlue,
        "enh1" => Color::LightGreen,
        "enh2" => Color::Yellow,
        _ => Color::Reset,
    }
}

fn node_cells(node: &NodeStatus) -> Vec<String> {
    let slots = &node.slots;
    let dead = node.neighbours.iter().filter(|line| line.dead).count();
    let linked = match dead {
        0 => node.neighbours.len().to_string(),
        dead => format!("{} ({dead} DEAD)", node.neighbours.len()),
    };
    vec![
        node.peer.to_string(),
        node.level.to_string(),
        short(node.up),
        format!("{} of {}", slots.used, slots.capacity),
        slots.vip.to_string(),
        slots.normal.to_string(),
        slots.vip_dual.saturating_add(slots.normal_dual).to_string(),
        slots.enhancements.to_string(),
        node.sessions.to_string(),
        linked,
    ]
}

fn proxy_cells(proxy: &ProxyStatus) -> Vec<String> {
    let counts = &proxy.proxy;
    let hits = share(counts.hits, counts.hits.saturating_add(counts.misses));
    vec![
        proxy.peer.to_string(),
        "proxy".into(),
        short(proxy.up),
        ByteCount(proxy.used.0).to_string(),
        String::new(),
        proxy.clients.len().to_string(),
        String::new(),
        String::new(),
        proxy.sessions.to_string(),
        format!("hits {hits}"),
    ]
}

/// What proxies' viewers want, then the last events, newest first.
fn last(view: &View, rows: &[(std::net::SocketAddr, &Row)], most: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (_, row) in rows {
        if let Some(Status::Proxy(proxy)) = &row.status
            && !proxy.clients.is_empty()
        {
            let who = format!("at {}: ", proxy.peer);
            lines.push(Line::from(vec![bold(who), Span::raw(clients(proxy))]));
        }
    }
    let left = most.saturating_sub(lines.len());
    for (ago, peer, event) in view.events(left) {
        let ago = Span::styled(format!("{:>8} ago  ", short(ago)), Style::new().fg(Color::DarkGray));
        lines.push(Line::from(vec![ago, bold(format!("{peer:<10} ")), Span::raw(event)]));
    }
    lines
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::super::view::tests::some;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| super::draw(frame, &some())).unwrap();
        super::super::printed(&terminal)
    }

    #[test]
    fn one_picture_shows_who_answers_what_they_do_and_who_is_silent() {
        let text = drawn(110, 14);
        let mut lines = text.lines();
        let head = lines.next().unwrap();
        assert!(head.contains("2 answer, 1 SILENT   watching: 2 vip, 4 normal"), "{head}");
        lines.next();
        let origin: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
        assert_eq!(origin.get(..2).unwrap(), ["origin", "origin"]);
        assert_eq!(origin.get(origin.len() - 9..).unwrap(), ["3", "of", "200", "1", "2", "5", "0", "3", "0"]);
        assert!(text.contains("127.0.0.1:3") && text.contains("SILENT"));
        assert!(text.contains("1 s ago  base-2     believed dead  detector base-2  node base-9"), "{text}");
    }

    #[test]
    fn a_small_window_shows_less_and_does_not_panic() {
        for (width, height) in [(1, 1), (20, 3), (40, 8), (300, 80)] {
            drawn(width, height);
        }
    }
}
