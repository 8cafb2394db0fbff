//! The clients of one title: where each is, what it asks for and accepts, and
//! what it waits for (Wakamiya et al., 3.1: position, `Q_j`, beta, `p_j`).

use super::cooperation::{Beta, ClientId, FetchId};
use super::remote_table::Smoothed;
use media::{BitRate, Quality, Span, Time};

/// A request that has not been answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) block: u32,
    /// Q and A when it was asked.
    pub(super) wanted: Quality,
    pub(super) acceptable: Quality,
    /// When it was asked, with so much buffered.
    pub(super) asked: Time,
    pub(super) buffered: Span,
    /// What it waits for.
    pub(super) fetch: FetchId,
    /// How often a fetch for it has come to nothing.
    pub(super) tries: u8,
}

/// One client.
#[derive(Clone, Debug)]
pub(super) struct ClientRow {
    pub(super) id: ClientId,
    pub(super) beta: Beta,
    delay: Smoothed,
    rate: Smoothed,
    /// The block it asked for last; none before the first request.
    pub(super) position: Option<u32>,
    /// What it asked for last.
    pub(super) wanted: Quality,
    /// Where it was when its window was asked about last.
    pub(super) asked_at: Option<u32>,
    pub(super) waiting: Vec<Waiting>,
}

impl ClientRow {
    /// A client that has not asked for anything yet.
    pub(super) fn new(id: ClientId, beta: Beta, delay: Span, rate: BitRate) -> Self {
        let mut row = Self {
            id,
            beta,
            delay: Smoothed::default(),
            rate: Smoothed::default(),
            position: None,
            wanted: Quality(1),
            asked_at: None,
            waiting: Vec::new(),
        };
        row.measure(Some(delay), Some(rate), 1);
        row
    }

    /// `d_j`, one way.
    pub(super) fn delay(&self) -> Span {
        self.delay.get().map_or(Span::ZERO, Span::from_nanos)
    }

    /// `r_j`.
    pub(super) fn rate(&self) -> BitRate {
        BitRate(self.rate.get().unwrap_or(u64::MAX))
    }

    pub(super) fn measure(&mut self, delay: Option<Span>, rate: Option<BitRate>, smoothing: u64) {
        if let Some(delay) = delay {
            self.delay.measure(delay.as_nanos(), smoothing);
        }
        if let Some(rate) = rate.filter(|rate| rate.0 > 0) {
            self.rate.measure(rate.0, smoothing);
        }
    }

    /// The least it accepts of what it asked for last.
    pub(super) fn acceptable(&self) -> Quality {
        self.beta.acceptable(self.wanted)
    }

    pub(super) fn waits_for(&self, block: u32) -> Option<&Waiting> {
        self.waiting.iter().find(|waiting| waiting.block == block)
    }

    /// Takes a request out of those that wait.
    pub(super) fn answered(&mut self, block: u32) -> Option<Waiting> {
        let at = self.waiting.iter().position(|waiting| waiting.block == block)?;
        Some(self.waiting.remove(at))
    }
}

/// All clients of a title, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Clients(Vec<ClientRow>);

impl Clients {
    pub(super) fn add(&mut self, row: ClientRow) {
        match self.0.binary_search_by_key(&row.id, |other| other.id) {
            Ok(at) => {
                if let Some(place) = self.0.get_mut(at) {
                    *place = row;
                }
            }
            Err(at) => self.0.insert(at, row),
        }
    }

    pub(super) fn remove(&mut self, client: ClientId) -> bool {
        let before = self.0.len();
        self.0.retain(|row| row.id != client);
        self.0.len() != before
    }

    pub(super) fn get(&self, client: ClientId) -> Option<&ClientRow> {
        self.0.get(self.0.binary_search_by_key(&client, |row| row.id).ok()?)
    }

    pub(super) fn get_mut(&mut self, client: ClientId) -> Option<&mut ClientRow> {
        let at = self.0.binary_search_by_key(&client, |row| row.id).ok()?;
        self.0.get_mut(at)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ClientRow> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ClientRow> {
        self.0.iter_mut()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `Qmax(i)`: the most that is asked for by a client which is at the block
    /// or has yet to come to it; nothing if there is none.
    pub(super) fn most_wanted(&self, block: u32) -> Quality {
        let coming = self.0.iter().filter(|row| row.position.is_some_and(|position| position <= block));
        coming.map(|row| row.wanted).max().unwrap_or_default()
    }

    /// How low replacement may bring a block: the most that is asked for, or
    /// accepted, by a client which has yet to come to it.
    pub(super) fn floor(&self, block: u32, of: impl Fn(&ClientRow) -> Quality) -> Quality {
        let behind = self.0.iter().filter(|row| row.position.is_some_and(|position| position < block));
        behind.map(of).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests state exact values")]
    use super::*;

    fn row(id: u64, position: Option<u32>, wanted: u8) -> ClientRow {
        let row = ClientRow::new(ClientId(id), Beta(600), Span::ZERO, BitRate(1));
        ClientRow { position, wanted: Quality(wanted), ..row }
    }

    #[test]
    fn the_least_accepted_is_rounded_up_to_whole_layers_and_never_nothing() {
        let table: Vec<u8> = (1..=10).map(|wanted| Beta(600).acceptable(Quality(wanted)).0).collect();
        assert_eq!(table, [1, 2, 2, 3, 3, 4, 5, 5, 6, 6]);
        assert_eq!(Beta(1000).acceptable(Quality(7)), Quality(7));
        assert_eq!(Beta(u16::MAX).acceptable(Quality(7)), Quality(7));
        assert_eq!(Beta(0).acceptable(Quality(7)), Quality(1));
        assert_eq!(Beta(0).acceptable(Quality(0)), Quality(1));
    }

    #[test]
    fn those_behind_a_block_decide_what_it_is_worth() {
        let mut clients = Clients::default();
        for client in [row(3, Some(10), 4), row(1, Some(20), 9), row(2, None, 10)] {
            clients.add(client);
        }
        let most: Vec<u8> = [5, 10, 19, 20, 90].map(|block| clients.most_wanted(block).0).into();
        assert_eq!(most, [0, 4, 4, 9, 9]);
        let floor: Vec<u8> = [10, 11, 20, 21].map(|block| clients.floor(block, |row| row.wanted).0).into();
        assert_eq!(floor, [0, 4, 4, 9]);
        assert_eq!(clients.floor(21, ClientRow::acceptable), Quality(6));
        clients.add(row(1, Some(20), 2));
        assert_eq!((clients.most_wanted(90), clients.iter().count()), (Quality(4), 3));
        assert!(clients.remove(ClientId(3)) && !clients.remove(ClientId(3)));
        assert_eq!(clients.get(ClientId(1)).unwrap().wanted, Quality(2));
    }
}
