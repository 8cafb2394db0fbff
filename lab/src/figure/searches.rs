//! What a search for a backup costs.

use super::chart::{self, Curve, Words};
use super::{FigureError, Options, Progress, Report, cells, file, work};
use sim::eval::search_cost::{self, Cost, LossPoint};
use std::fmt::Write as _;

#[derive(Clone, Copy)]
enum Piece {
    Cost(u32, bool),
    Loss(u32),
}

enum Done {
    Cost(Cost),
    Loss(LossPoint),
}

pub(super) fn draw(options: &Options, progress: Progress<'_>) -> Result<Report, FigureError> {
    let seeds = options.seeds(if options.full { 10 } else { 3 });
    let users: &[u32] = if options.full { &[1, 2, 5, 10, 20, 50, 100] } else { &[1, 5, 20, 50] };
    let mut pieces: Vec<Piece> = users
        .iter()
        .rev()
        .flat_map(|users| [Piece::Cost(*users, true), Piece::Cost(*users, false)])
        .collect();
    pieces.extend([0, 100, 200, 300].map(Piece::Loss));
    let done = work::all(&pieces, progress, |piece| match *piece {
        Piece::Cost(users, boards) => search_cost::measure(users, boards, &seeds).map(Done::Cost),
        Piece::Loss(permille) => search_cost::loss(20, permille, &seeds).map(Done::Loss),
    });
    let (mut costs, mut losses) = (Vec::new(), Vec::new());
    for done in done {
        match done? {
            Done::Cost(cost) => costs.push(cost),
            Done::Loss(loss) => losses.push(loss),
        }
    }
    costs.sort_by_key(|cost| (cost.users, !cost.boards));
    let alone = costs.iter().find(|cost| cost.users == 1 && cost.boards);
    let note = |cost: &Cost| format!("one search alone: {} messages, {} s", cost.messages, cost.response);
    Ok(Report {
        claims: search_cost::verdicts(&costs, &losses).into_iter().map(Into::into).collect(),
        notes: alone.map(note).into_iter().collect(),
        files: vec![
            file("search-cost.csv", cost_csv(&costs)),
            file("search-loss.csv", loss_csv(&losses)),
            file("search-cost.svg", cost_svg(&costs)),
            file("search-loss.svg", loss_svg(&losses)),
        ],
    })
}

fn cost_csv(costs: &[Cost]) -> String {
    let mut csv = "users,boards,messages,messages_95,response_s,response_s_95,found,found_95\n".to_owned();
    for cost in costs {
        let (messages, response, found) = (cells(cost.messages), cells(cost.response), cells(cost.found));
        let _ = writeln!(csv, "{},{},{messages},{response},{found}", cost.users, cost.boards);
    }
    csv
}

fn loss_csv(losses: &[LossPoint]) -> String {
    let mut csv = "lost_permille,three_tries,three_tries_95,one_try,one_try_95\n".to_owned();
    for loss in losses {
        let _ = writeln!(csv, "{},{},{}", loss.loss_permille, cells(loss.three_tries), cells(loss.one_try));
    }
    csv
}

fn cost_svg(costs: &[Cost]) -> String {
    let curve = |(name, boards): (&str, bool)| Curve {
        name: name.to_owned(),
        points: costs
            .iter()
            .filter(|cost| cost.boards == boards)
            .map(|cost| (f64::from(cost.users), cost.messages.mean, cost.messages.half_width))
            .collect(),
    };
    let words =
        Words { title: "Messages for each search", across: "users who search at once", up: "messages" };
    chart::curves(words, 0.0, &[("with boards", true), ("without", false)].map(curve))
}

fn loss_svg(losses: &[LossPoint]) -> String {
    let curve = |name: &str, value: fn(&LossPoint) -> (f64, f64)| Curve {
        name: name.to_owned(),
        points: losses
            .iter()
            .map(|loss| {
                let (mean, half) = value(loss);
                (f64::from(loss.loss_permille) / 10.0, mean, half)
            })
            .collect(),
    };
    let words = Words {
        title: "Searches that find a backup when agents get lost",
        across: "agents lost, %",
        up: "share who found",
    };
    let curves = [
        curve("three tries", |loss| (loss.three_tries.mean, loss.three_tries.half_width)),
        curve("one try", |loss| (loss.one_try.mean, loss.one_try.half_width)),
    ];
    chart::curves(words, 0.0, &curves)
}
