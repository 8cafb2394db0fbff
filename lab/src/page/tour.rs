//! The guided tour: six steps, each of which does something to the network, waits
//! until what must come of it has come, and says what was seen.

mod sight;
mod steps;

use super::deeds::{Deed, DeedError, Orders};
use super::seat::{Note, Notes};
use super::state::{Snapshot, Tone, Tour};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How many steps there are.
const STEPS: u8 = 6;
/// How long a step may take in all.
const LONGEST: Duration = Duration::from_secs(90);

/// Leads through the tour, one step at a time.
#[derive(Clone, Debug)]
pub(super) struct Guide {
    orders: Orders,
    pages: watch::Receiver<Arc<Snapshot>>,
    notes: Notes,
    busy: Arc<AtomicBool>,
}

/// Why a step did not go as it should, in words.
#[derive(Debug)]
struct Missed(String);

impl From<DeedError> for Missed {
    fn from(error: DeedError) -> Self {
        Self(error.to_string())
    }
}

impl Guide {
    pub(super) fn new(orders: Orders, pages: watch::Receiver<Arc<Snapshot>>, notes: Notes) -> Self {
        Self { orders, pages, notes, busy: Arc::default() }
    }

    /// Begins a step; it goes on by itself.
    pub(super) async fn begin(&self, step: u8) -> Result<(), DeedError> {
        if !(1..=STEPS).contains(&step) {
            return Err(DeedError::NoStep(step));
        }
        if self.busy.swap(true, Ordering::AcqRel) {
            return Err(DeedError::Touring);
        }
        let mut guide = self.clone();
        guide
            .move_on(move |tour| {
                tour.step = step;
                tour.busy = true;
                "preparing".clone_into(&mut tour.says);
                tour.look_at.clear();
            })
            .await;
        tokio::spawn(async move {
            let outcome = timeout(LONGEST, guide.lead(step)).await;
            let outcome = outcome.unwrap_or_else(|_| Err(Missed("it took too long".into())));
            guide.end(step, outcome).await;
        });
        Ok(())
    }

    async fn lead(&mut self, step: u8) -> Result<String, Missed> {
        match step {
            1 => self.layers_fade_outwards().await,
            2 => self.a_search_finds_slots().await,
            3 => self.a_base_node_dies().await,
            4 => self.one_of_two_dies().await,
            5 => self.a_layer_is_lost_and_comes_back().await,
            _ => self.the_proxy_filters().await,
        }
    }

    async fn end(&mut self, step: u8, outcome: Result<String, Missed>) {
        let (said, went_well) = match outcome {
            Ok(said) => (said, true),
            Err(Missed(why)) => (format!("this did not go as it should: {why}"), false),
        };
        let log = format!("tour, step {step}: {said}");
        let note: Note = Box::new(move |page| {
            page.say(if went_well { Tone::Good } else { Tone::Bad }, log);
            let tour = &mut page.tour;
            tour.busy = false;
            tour.says = said;
            if went_well && !tour.done.contains(&step) {
                tour.done.push(step);
            }
        });
        // Without a page nobody needs to know.
        let _ = self.notes.send(note).await;
        self.busy.store(false, Ordering::Release);
    }

    async fn move_on(&mut self, change: impl FnOnce(&mut Tour) + Send + 'static) {
        let note: Note = Box::new(move |page| change(&mut page.tour));
        // Without a page nobody needs to know.
        let _ = self.notes.send(note).await;
    }

    /// Says what is awaited, and where to look.
    async fn say(&mut self, says: impl Into<String>, look_at: &[&str]) {
        let (says, look_at) = (says.into(), look_at.iter().map(|name| (*name).to_owned()).collect());
        self.move_on(move |tour| {
            tour.says = says;
            tour.look_at = look_at;
        })
        .await;
    }

    /// Asks for a deed, and waits until it is done and the page shows it.
    async fn ask(&self, deed: Deed) -> Result<(), Missed> {
        self.orders.ask(deed).await?;
        let mut pages = self.pages.clone();
        pages.mark_unchanged();
        for _ in 0..2 {
            // What is published next may have been on its way before the deed.
            pages.changed().await.map_err(|_| Missed("the page is gone".into()))?;
        }
        Ok(())
    }

    fn page(&self) -> Arc<Snapshot> {
        Arc::clone(&self.pages.borrow())
    }

    /// Waits until the page shows it.
    async fn until<T>(
        &mut self,
        seconds: u64,
        what: &str,
        mut seen: impl FnMut(&Snapshot) -> Option<T>,
    ) -> Result<T, Missed> {
        let wait = async {
            loop {
                let found = seen(&self.pages.borrow_and_update());
                match found {
                    Some(found) => return Some(found),
                    None => self.pages.changed().await.ok()?,
                }
            }
        };
        let waited = timeout(Duration::from_secs(seconds), wait).await.ok().flatten();
        waited.ok_or_else(|| Missed(format!("{what} within {seconds} s")))
    }
}
