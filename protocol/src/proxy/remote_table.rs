//! The remote table: what is known of each server, the origin first, and what
//! has been asked of it (Wakamiya et al., 3.1: `d_k`, `r_k`, `R_k`). What a
//! server offers of each block stands with the title.

use super::cooperation::{FetchId, FetchKind, Server};
use media::{BitRate, ByteCount, Quality, Span, Time};

/// The origin's place in the table.
pub(super) const ORIGIN: usize = 0;

/// An outstanding request: (block, quality, miss or prefetch), in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) id: FetchId,
    /// The title by its place.
    pub(super) title: usize,
    pub(super) block: u32,
    pub(super) have: Quality,
    pub(super) want: Quality,
    pub(super) bytes: ByteCount,
    pub(super) kind: FetchKind,
    /// When it was expected to be here, as it was ordered.
    pub(super) due: Time,
    /// When its first bytes were here.
    pub(super) begun: Option<Time>,
    /// It was withdrawn, but may have begun.
    pub(super) withdrawn: bool,
}

impl Request {
    pub(super) fn is_of(&self, title: usize, block: u32) -> bool {
        self.block == block && self.title == title && !self.withdrawn
    }
}

/// An estimate from measurements: the first counts whole, each later one by the
/// configured share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Smoothed(Option<u64>);

impl Smoothed {
    pub(super) const fn get(self) -> Option<u64> {
        self.0
    }

    pub(super) fn measure(&mut self, value: u64, smoothing: u64) {
        let smoothing = smoothing.max(1);
        self.0 = Some(match self.0 {
            None => value,
            // Rounded so that equal values leave the estimate as it is.
            Some(old) if value >= old => old.saturating_add((value - old) / smoothing),
            Some(old) => old.saturating_sub((old - value) / smoothing),
        });
    }
}

/// One server.
#[derive(Clone, Debug)]
pub(super) struct ServerRow {
    pub(super) id: Server,
    pub(super) lost: bool,
    first: (Span, BitRate),
    delay: Smoothed,
    rate: Smoothed,
    /// `R_k`, the oldest first.
    pub(super) requests: Vec<Request>,
}

impl ServerRow {
    pub(super) fn new(id: Server, first_delay: Span, first_rate: BitRate) -> Self {
        let (delay, rate) = (Smoothed::default(), Smoothed::default());
        Self { id, lost: false, first: (first_delay, first_rate), delay, rate, requests: Vec::new() }
    }

    /// `d_k`, one way.
    pub(super) fn delay(&self) -> Span {
        self.delay.0.map_or(self.first.0, Span::from_nanos)
    }

    /// `r_k`.
    pub(super) fn rate(&self) -> BitRate {
        self.rate.0.map_or(self.first.1, BitRate)
    }

    pub(super) fn measure(&mut self, delay: Option<Span>, rate: Option<BitRate>, smoothing: u64) {
        if let Some(delay) = delay {
            self.delay.measure(delay.as_nanos(), smoothing);
        }
        // A rate of nothing would make every wait endless, and never be mended.
        if let Some(rate) = rate.filter(|rate| rate.0 > 0) {
            self.rate.measure(rate.0, smoothing);
        }
    }

    /// What of a request has still to come at `now`.
    fn left(&self, now: Time, request: &Request) -> Span {
        let whole = self.rate().time_for(request.bytes);
        request.begun.map_or(whole, |begun| whole.saturating_sub(now - begun))
    }

    /// When everything that goes before a prefetch is expected to be here.
    fn backlog(&self, now: Time) -> Time {
        let before = self.requests.iter().filter(|one| one.kind == FetchKind::Miss || one.begun.is_some());
        before.map(|request| self.due(now, request)).max().unwrap_or(now)
    }

    /// Whether a request is a prefetch that the server will still hold back when
    /// it hears of a new request: what was not, was begun meanwhile, even if its
    /// first bytes are not here yet.
    pub(super) fn waits(&self, now: Time, request: &Request) -> bool {
        request.kind == FetchKind::Prefetch && request.begun.is_none() && self.holds_back(now)
    }

    /// Whether what goes before a prefetch is still coming when the server hears of a
    /// new request.
    fn holds_back(&self, now: Time) -> bool {
        self.backlog(now) > now + self.delay().saturating_mul(2)
    }

    /// `W_k / r_k`: what is served before a new request. Misses go first, then
    /// what has begun; a prefetch that waits is behind every miss, and a new
    /// prefetch takes its place.
    pub(super) fn queue(&self, now: Time) -> Span {
        let holds_back = self.holds_back(now);
        let goes_first =
            |request: &&Request| !holds_back || request.kind == FetchKind::Miss || request.begun.is_some();
        let before = self.requests.iter().filter(goes_first);
        before.fold(Span::ZERO, |sum, request| sum + self.left(now, request))
    }

    /// When an outstanding request is expected to be here.
    pub(super) fn due(&self, now: Time, request: &Request) -> Time {
        match request.begun {
            Some(begun) => (begun + self.rate().time_for(request.bytes)).max(now),
            // Misses that came later go before it.
            None if request.kind == FetchKind::Prefetch => {
                request.due.max(self.backlog(now) + self.left(now, request))
            }
            None => request.due.max(now),
        }
    }
}

/// All servers: the origin, then peers in the order in which they were found.
/// None is ever removed, so that its place is its name.
#[derive(Clone, Debug)]
pub(super) struct RemoteTable(Vec<ServerRow>);

impl RemoteTable {
    pub(super) fn new(origin: ServerRow) -> Self {
        Self(vec![origin])
    }

    /// The place of a server.
    pub(super) fn place(&self, server: Server) -> Option<usize> {
        self.0.iter().position(|row| row.id == server)
    }

    pub(super) fn row(&self, place: usize) -> Option<&ServerRow> {
        self.0.get(place)
    }

    pub(super) fn row_mut(&mut self, place: usize) -> Option<&mut ServerRow> {
        self.0.get_mut(place)
    }

    pub(super) fn add(&mut self, row: ServerRow) {
        self.0.push(row);
    }

    /// Every server with its place, lost ones too.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, &ServerRow)> {
        self.0.iter().enumerate()
    }

    /// What is on its way of a block, from whom.
    pub(super) fn pending(&self, title: usize, block: u32) -> impl Iterator<Item = (&ServerRow, &Request)> {
        self.0.iter().flat_map(move |row| {
            let mine = row.requests.iter().filter(move |request| request.is_of(title, block));
            mine.map(move |request| (row, request))
        })
    }

    /// The best that is on its way of a block.
    pub(super) fn pending_quality(&self, title: usize, block: u32) -> Quality {
        self.pending(title, block).map(|(_, request)| request.want).max().unwrap_or_default()
    }

    pub(super) fn begun(&mut self, now: Time, fetch: FetchId) {
        let mut requests = self.0.iter_mut().flat_map(|row| &mut row.requests);
        if let Some(request) = requests.find(|request| request.id == fetch) {
            request.begun.get_or_insert(now);
            request.withdrawn = false;
        }
    }

    /// Withdraws every prefetch of a block at this quality or less that still
    /// waits; where, and which.
    pub(super) fn withdraw(
        &mut self,
        now: Time,
        title: usize,
        block: u32,
        quality: Quality,
    ) -> Vec<(Server, FetchId)> {
        let waits = self.pending(title, block).filter(|(row, request)| row.waits(now, request));
        let withdrawn: Vec<(Server, FetchId)> = waits
            .filter(|(_, request)| request.want <= quality)
            .map(|(row, request)| (row.id, request.id))
            .collect();
        for request in self.0.iter_mut().flat_map(|row| &mut row.requests) {
            request.withdrawn |= withdrawn.iter().any(|(_, fetch)| *fetch == request.id);
        }
        withdrawn
    }

    /// An outstanding request.
    pub(super) fn request_mut(&mut self, fetch: FetchId) -> Option<&mut Request> {
        self.0.iter_mut().flat_map(|row| &mut row.requests).find(|request| request.id == fetch)
    }

    /// Takes a request out of its `R_k`; with the place of its server.
    pub(super) fn take(&mut self, fetch: FetchId) -> Option<(usize, Request)> {
        self.0.iter_mut().enumerate().find_map(|(place, row)| {
            let at = row.requests.iter().position(|request| request.id == fetch)?;
            Some((place, row.requests.remove(at)))
        })
    }

    /// Takes every request that `is_over`.
    pub(super) fn take_all(&mut self, mut is_over: impl FnMut(usize, &Request) -> bool) -> Vec<Request> {
        let mut taken = Vec::new();
        for (place, row) in self.0.iter_mut().enumerate() {
            taken.extend(row.requests.extract_if(.., |request| is_over(place, request)));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    fn row() -> ServerRow {
        // A thousand bytes take a second.
        ServerRow::new(Server::Origin, Span::from_millis(100), BitRate(8_000))
    }

    fn request(id: u64, kind: FetchKind, bytes: u64, due: u64) -> Request {
        Request {
            id: FetchId(id),
            title: 0,
            block: u32::try_from(id).unwrap(),
            have: Quality::NONE,
            want: Quality(2),
            bytes: ByteCount(bytes),
            kind,
            due: at(due),
            begun: None,
            withdrawn: false,
        }
    }

    #[test]
    fn the_first_measurement_counts_whole_and_later_ones_an_eighth() {
        let mut row = row();
        assert_eq!((row.delay(), row.rate()), (Span::from_millis(100), BitRate(8_000)));
        row.measure(Some(Span::from_millis(40)), None, 8);
        row.measure(Some(Span::from_millis(80)), Some(BitRate(16_000)), 8);
        assert_eq!((row.delay(), row.rate()), (Span::from_millis(45), BitRate(16_000)));
        row.measure(Some(Span::from_millis(5)), Some(BitRate(0)), 8);
        assert_eq!((row.delay(), row.rate()), (Span::from_millis(40), BitRate(16_000)));
    }

    #[test]
    fn before_a_new_request_come_all_misses_and_what_has_begun() {
        let mut row = row();
        row.requests = vec![
            request(1, FetchKind::Prefetch, 1000, 1100),
            request(2, FetchKind::Miss, 500, 1600),
            request(3, FetchKind::Prefetch, 4000, 5000),
        ];
        row.requests[0].begun = Some(at(400));
        assert_eq!(row.queue(at(600)), Span::from_millis(800 + 500));
        assert!(row.waits(at(600), &row.requests[2]) && !row.waits(at(600), &row.requests[0]));
        assert_eq!(row.queue(at(1_500)), Span::from_millis(500 + 4_000), "by then the last one has begun");
        let due = |place: usize| row.due(at(600), &row.requests[place]);
        assert_eq!((due(0), due(1)), (at(1_400), at(1_600)));
        assert_eq!(due(2), at(1_600 + 4_000), "later misses went before it");
    }

    #[test]
    fn a_request_is_found_by_its_block_and_leaves_once() {
        let mut table = RemoteTable::new(row());
        table.row_mut(ORIGIN).unwrap().requests =
            vec![request(1, FetchKind::Miss, 1, 1), request(2, FetchKind::Prefetch, 1, 1)];
        assert_eq!(table.pending_quality(0, 2), Quality(2));
        assert_eq!(table.pending_quality(1, 2), Quality::NONE, "another title");
        table.begun(at(7), FetchId(2));
        table.begun(at(9), FetchId(2));
        let (place, taken) = table.take(FetchId(2)).unwrap();
        assert_eq!((place, taken.begun), (ORIGIN, Some(at(7))));
        assert!(table.take(FetchId(2)).is_none());
        assert_eq!(table.take_all(|place, _| place == ORIGIN).len(), 1);
        assert_eq!(table.pending(0, 1).count(), 0);
    }
}
