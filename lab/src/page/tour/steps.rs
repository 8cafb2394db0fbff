//! The six steps.

use super::sight::{GUEST, is_safe, is_whole, playing, running, source, spare};
use super::{Guide, Missed};
use crate::page::deeds::{Deed, Wish};
use crate::page::hear::layers;
use crate::page::state::{Condition, Snapshot, Viewing};
use media::{Layer, Quality};
use protocol::PeerId;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How deep the buffer has to be before something is killed.
const DEEP_MS: u64 = 3_200;
/// For how long nothing must be seen after one of two nodes died: longer than a
/// buffer.
const QUIET: Duration = Duration::from_secs(6);

fn named(name: &str) -> Result<PeerId, Missed> {
    name.parse().map_err(|_| Missed(format!("{name} is no name")))
}

fn seconds(since: Instant) -> String {
    format!("{:.1} s", since.elapsed().as_secs_f64())
}

/// How often the guest's picture stood still, in words.
fn froze(page: &Snapshot, before: u32) -> String {
    let now = page.viewers.get(GUEST).map_or(0, |viewer| viewer.freezes);
    match now.saturating_sub(before) {
        0 => "no freeze".to_owned(),
        1 => "one freeze".to_owned(),
        many => format!("{many} freezes"),
    }
}

fn freezes(page: &Snapshot) -> u32 {
    page.viewers.get(GUEST).map_or(0, |viewer| viewer.freezes)
}

impl Guide {
    /// Whatever earlier steps or visitors broke is mended, and the guest watches.
    async fn prepare(&mut self, deep_ms: u64) -> Result<(), Missed> {
        self.say("mending what is broken; the film must play for a moment", &[GUEST]).await;
        self.ask(Deed::Mend).await?;
        self.until(20, "not every node was heard again", |page| is_whole(page).then_some(())).await?;
        let guest = named(GUEST)?;
        let page = self.page();
        match page.viewers.get(GUEST) {
            None => {
                let (quality, proxy) = (Quality::GOLD, false);
                let open = Condition::Open;
                self.ask(Deed::Invite { name: guest, quality, vip: true, proxy, condition: open }).await?;
            }
            Some(viewer) if viewer.viewing == Viewing::Over => {
                self.ask(Deed::ChangeViewer { viewer: guest, quality: None, vip: None }).await?;
            }
            Some(_) => {}
        }
        let (quality, vip) = (Some(Wish::Gold), Some(true));
        let wants = self.page().viewers.get(GUEST).is_some_and(|viewer| viewer.vip && viewer.wants == "gold");
        if !wants {
            self.ask(Deed::ChangeViewer { viewer: guest, quality, vip }).await?;
        }
        let safe = |page: &Snapshot| is_safe(page, GUEST, deep_ms).then_some(());
        self.until(30, &format!("{GUEST} was not served in full"), safe).await
    }

    fn source_of(&self, layer: &str) -> Result<String, Missed> {
        let page = self.page();
        let found = source(&page, GUEST, layer).map(str::to_owned);
        found.ok_or_else(|| Missed(format!("nobody sends {GUEST} {layer}")))
    }

    fn top_layer(&self) -> String {
        self.page().film.layers.last().cloned().unwrap_or_else(|| Layer::BASE.to_string())
    }

    pub(super) async fn layers_fade_outwards(&mut self) -> Result<String, Missed> {
        self.prepare(0).await?;
        let page = self.page();
        let node = spare(&page).ok_or_else(|| Missed("every Base node is needed".into()))?.to_owned();
        self.say(
            format!("{node} starts again with an empty disk; the origin's agent comes outwards"),
            &[&node, "origin"],
        )
        .await;
        let began = Instant::now();
        let peer = named(&node)?;
        self.ask(Deed::Empty { node: peer }).await?;
        self.say(format!("{node} copies its layer, and no other"), &[&node, "origin"]).await;
        self.until(40, "the layer was not copied", |page| {
            page.nodes.get(&node).filter(|state| state.holds).map(|_| ())
        })
        .await?;
        Ok(format!(
            "{node} came with nothing and holds Base {} later, copied from the origin. Outer rings hold less, \
             and there are more of them.",
            seconds(began)
        ))
    }

    pub(super) async fn a_search_finds_slots(&mut self) -> Result<String, Missed> {
        let guest = "bert";
        self.say("bert knocks at a Base node: an agent looks for slots, level by level", &[guest]).await;
        self.ask(Deed::Mend).await?;
        let name = named(guest)?;
        let (quality, proxy, condition) = (Quality::SILVER, false, Condition::Open);
        self.ask(Deed::Invite { name, quality, vip: false, proxy, condition }).await?;
        let shown = |page: &Snapshot| playing(page, guest).map(|viewer| viewer.startup_ms);
        let after = self.until(20, "bert saw no picture", shown).await?;
        let (base, next) = self
            .until(20, "bert was not served both layers", |page| {
                Some((source(page, guest, "base")?.to_owned(), source(page, guest, "enh1")?.to_owned()))
            })
            .await?;
        self.say("and another agent looks for somebody to stand behind", &[guest, &base, &next]).await;
        let behind = |page: &Snapshot| page.viewers.get(guest)?.backup.clone();
        let backup = self.until(20, "nobody stands behind", behind).await?;
        Ok(format!(
            "bert saw the first picture after {after} ms: Base from {base}, Enh1 from {next}. {backup} stands behind {base} \
             (dashed), before anything has failed."
        ))
    }

    pub(super) async fn a_base_node_dies(&mut self) -> Result<String, Missed> {
        self.prepare(DEEP_MS).await?;
        let (victim, before) = (self.source_of("base")?, freezes(&self.page()));
        let backup =
            self.page().viewers.get(GUEST).and_then(|viewer| viewer.backup.clone()).unwrap_or_default();
        self.say(format!("{victim} is killed; {backup} stands behind"), &[&victim, &backup, GUEST]).await;
        self.ask(Deed::Kill { node: named(&victim)? }).await?;
        let next = self
            .until(15, "nobody stepped in", |page| {
                source(page, GUEST, "base").filter(|node| *node != victim).map(str::to_owned)
            })
            .await?;
        self.say(format!("{next} delivers; the buffer fills again"), &[&next, GUEST]).await;
        self.until(20, "the buffer stayed low", |page| is_safe(page, GUEST, DEEP_MS).then_some(())).await?;
        let page = self.page();
        let after = page.viewers.get(GUEST).map_or(0, |viewer| viewer.recovered_ms);
        Ok(format!(
            "{next} delivers Base. Its first chunk came {after} ms after the last word of {victim}: {}.",
            froze(&page, before)
        ))
    }

    pub(super) async fn one_of_two_dies(&mut self) -> Result<String, Missed> {
        self.prepare(DEEP_MS).await?;
        let top = self.top_layer();
        let (victim, before) = (self.source_of(&top)?, self.page());
        self.say(format!("{victim} is killed, one of two with the finest layer"), &[&victim, GUEST]).await;
        self.ask(Deed::Kill { node: named(&victim)? }).await?;
        let next = self
            .until(15, "the other one did not serve", |page| {
                source(page, GUEST, &top).filter(|node| *node != victim).map(str::to_owned)
            })
            .await?;
        self.say(format!("{next} delivers it now; watch the strip for a moment"), &[&next, GUEST]).await;
        sleep(QUIET).await;
        let page = self.page();
        let steps = |page: &Snapshot| page.viewers.get(GUEST).map(|viewer| viewer.steps.clone());
        if steps(&page) != steps(&before) {
            return Err(Missed("the quality changed".into()));
        }
        Ok(format!(
            "{next} took over the finest layer: no step in quality, {}.",
            froze(&page, freezes(&before))
        ))
    }

    pub(super) async fn a_layer_is_lost_and_comes_back(&mut self) -> Result<String, Missed> {
        // One of two may be dead already: the step before this one left it so.
        let top = self.top_layer();
        if running(&self.page(), &top).is_empty() {
            self.prepare(DEEP_MS).await?;
        }
        let safe = |page: &Snapshot| is_safe(page, GUEST, DEEP_MS).then_some(());
        self.until(30, &format!("{GUEST} was not served in full"), safe).await?;
        let page = self.page();
        let (before, victims) = (freezes(&page), running(&page, &top));
        let gold = page.viewers.get(GUEST).map_or(0, |viewer| layers(&viewer.shows));
        self.say(format!("the last with the finest layer is killed: {}", victims.join(", ")), &[GUEST]).await;
        for victim in &victims {
            self.ask(Deed::Kill { node: named(victim)? }).await?;
        }
        let shows = |page: &Snapshot| Some(layers(&playing(page, GUEST)?.shows));
        self.until(15, "the quality did not change", |page| shows(page).filter(|now| *now < gold)).await?;
        sleep(Duration::from_secs(2)).await;
        let back = victims.last().ok_or_else(|| Missed("nobody is left".into()))?;
        self.say(format!("one step down, and the film goes on; {back} starts again"), &[back, GUEST]).await;
        let began = Instant::now();
        self.ask(Deed::Revive { node: named(back)? }).await?;
        self.until(30, "the layer did not come back", |page| shows(page).filter(|now| *now == gold)).await?;
        let page = self.page();
        Ok(format!(
            "without its last node the layer was gone: one step down, {}. {} after {back} was started the picture \
             has it again.",
            froze(&page, before),
            seconds(began)
        ))
    }

    pub(super) async fn the_proxy_filters(&mut self) -> Result<String, Missed> {
        self.say("two viewers behind one proxy: dario's line is narrow, carla's is not", &["proxy-1"]).await;
        self.ask(Deed::Mend).await?;
        for leaves in ["bert"] {
            if self.page().viewers.contains_key(leaves) {
                self.ask(Deed::RemoveViewer { viewer: named(leaves)? }).await?;
            }
        }
        for (name, condition) in [("carla", Condition::Open), ("dario", Condition::Narrow)] {
            let (quality, proxy) = (Quality::GOLD, true);
            self.ask(Deed::Invite { name: named(name)?, quality, vip: false, proxy, condition }).await?;
        }
        self.say("the proxy gives each what its line carries", &["proxy-1", "carla", "dario"]).await;
        let shows = |page: &Snapshot, name: &str| Some(layers(&playing(page, name)?.shows));
        let both = |page: &Snapshot| Some((shows(page, "carla")?, shows(page, "dario")?));
        self.until(45, "the two lines made no difference", |page| {
            both(page).filter(|(carla, dario)| *dario >= 1 && carla > dario)
        })
        .await?;
        sleep(QUIET).await;
        let page = self.page();
        let shown =
            |name: &str| page.viewers.get(name).map(|viewer| viewer.shows.clone()).unwrap_or_default();
        Ok(format!(
            "carla sees {}, dario {}, from one proxy: layers are left out for the one whose line is narrow, chunk \
             by chunk, without a second copy of the film.",
            shown("carla"),
            shown("dario")
        ))
    }
}
