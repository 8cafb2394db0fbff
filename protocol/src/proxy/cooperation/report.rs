//! What a mind says of itself to whoever asks for the proxy's status.

use super::{Cooperation, CooperationConfig, Counts, Server};
use crate::peer::PeerId;
use crate::status::{CachedLine, ClientLine, MAX_LINES, ServerLine};
use media::{ByteCount, Quality};

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Cooperation {
    /// Requests and bytes since the start.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The settings.
    pub const fn config(&self) -> &CooperationConfig {
        &self.config
    }

    /// How many fetches are open.
    pub fn open_fetches(&self) -> usize {
        self.remote.rows().map(|(_, row)| row.requests.len()).sum()
    }

    /// The remote table, the origin first.
    pub fn server_lines(&self) -> Vec<ServerLine> {
        let offers = |place: usize| {
            let told = self.titles.iter().flatten().filter_map(|title| title.offers.get(place));
            count(told.flatten().filter(|quality| **quality > Quality::NONE).count())
        };
        let line = |(place, row): (usize, &super::ServerRow)| ServerLine {
            server: row.id,
            lost: row.lost,
            delay: row.delay(),
            rate: row.rate(),
            open: count(row.requests.len()),
            offers: matches!(row.id, Server::Peer(_)).then(|| offers(place)),
        };
        self.remote.rows().take(MAX_LINES).map(line).collect()
    }

    /// The cache table by titles.
    pub fn title_lines(&self) -> Vec<CachedLine> {
        let name = |place: usize| match self.remote.row(place).map(|row| row.id) {
            Some(Server::Peer(peer)) => Some(peer),
            Some(Server::Origin) | None => None,
        };
        let line = |title: &super::Title| CachedLine {
            title: title.name.clone(),
            clients: count(title.clients.iter().count()),
            blocks: title.table.blocks(),
            held: title.cache.held(),
            size: ByteCount(title.cache.bytes()),
            marked_by: title.cache.markers().filter_map(|(peer, _)| name(peer)).collect::<Vec<PeerId>>(),
        };
        self.titles.iter().flatten().take(MAX_LINES).map(line).collect()
    }

    /// The clients, by titles.
    pub fn client_lines(&self) -> Vec<ClientLine> {
        let rows = self.titles.iter().flatten().flat_map(|title| {
            let name = &title.name;
            title.clients.iter().map(move |row| ClientLine {
                client: row.id,
                title: name.clone(),
                position: row.position,
                wanted: row.wanted,
                acceptable: row.acceptable(),
                delay: row.delay(),
                rate: row.rate(),
            })
        });
        rows.take(MAX_LINES).collect()
    }
}
