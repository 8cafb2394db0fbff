//! What a person writes down about a site, and what is wrong with it.

use media::{ByClass, TitleClass};
use serde::Deserialize;
use sim::theory::TheoryError;
use sim::theory::sizing::{Site, Stream};

/// The most slots of a site.
pub const MAX_SLOTS: u32 = 5000;
/// Steps of a sweep beyond which links are divided into larger units.
pub(super) const ENOUGH_STEPS: u64 = 200_000_000;

/// A plan as a TOML file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// What there is.
    pub site: SiteFile,
    /// What a viewer takes of the links.
    pub rates: Rates,
    /// What is asked for.
    pub class: ByClass<Option<ClassDemand>>,
}

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteFile {
    /// Viewers that the node serves at once. 1 to 5000.
    pub slots: u32,
    /// The link to the viewers in Mbit/s; left out: it never fills.
    pub to_viewers_mbps: Option<f64>,
    /// The link to the origin in Mbit/s; left out: it never fills.
    pub to_origin_mbps: Option<f64>,
}

/// What a viewer of each quality takes, in Mbit/s, all layers together.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_field_names, reason = "the names of the fields are the names of the qualities")]
pub struct Rates {
    /// Three layers.
    pub gold: f64,
    /// Two layers.
    pub silver: f64,
    /// Base.
    pub bronze: f64,
}

/// The demand of one class.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassDemand {
    /// Requests an hour.
    pub arrivals_per_hour: f64,
    /// How long one is watched, on average.
    pub mean_minutes: f64,
    /// Which share is for gold.
    #[serde(default)]
    pub gold: f64,
    /// Which share is for silver.
    #[serde(default)]
    pub silver: f64,
    /// Which share is for bronze.
    #[serde(default)]
    pub bronze: f64,
    /// The share of requests whose title is stored at the site. Default 1.
    #[serde(default = "all")]
    pub stored: f64,
    /// The share that may be refused at most; left out: no target.
    pub target: Option<f64>,
    /// Viewings of this class at once, if that is not to be calculated.
    pub threshold: Option<u32>,
}

const fn all() -> f64 {
    1.0
}

/// What is wrong with a plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A value makes no sense.
    #[error("`{field}`: {what}")]
    Field {
        /// Where it stands in the file.
        field: String,
        /// Why not.
        what: String,
        /// What would help.
        hint: &'static str,
    },
    /// It cannot be calculated.
    #[error("this site cannot be calculated exactly")]
    Theory(#[source] TheoryError),
}

impl PlanError {
    /// What would help.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Field { hint, .. } => hint,
            Self::Theory(_) => {
                "fewer slots or thresholds, or a link left out that does not fill, make it smaller"
            }
        }
    }
}

fn wrong<T>(field: impl Into<String>, what: impl Into<String>, hint: &'static str) -> Result<T, PlanError> {
    Err(PlanError::Field { field: field.into(), what: what.into(), hint })
}

/// A number in a range.
fn within(field: String, value: f64, range: (f64, f64), hint: &'static str) -> Result<(), PlanError> {
    if value.is_finite() && value >= range.0 && value <= range.1 {
        return Ok(());
    }
    wrong(field, format!("{value} is not between {} and {}", range.0, range.1), hint)
}

impl PlanFile {
    /// The classes of the plan.
    pub fn demands(&self) -> impl Iterator<Item = (TitleClass, &ClassDemand)> {
        self.class.iter().filter_map(|(class, demand)| Some((class, demand.as_ref()?)))
    }

    /// The classes whose thresholds may be looked for, the last one first: those that
    /// ask for something and have neither target nor threshold. If there is none, one that has both or either,
    /// first of all without a target, else with the loosest.
    pub fn limited(&self) -> Vec<TitleClass> {
        let asks = |(_, demand): &(TitleClass, &ClassDemand)| demand.arrivals_per_hour > 0.0;
        let free = |demand: &ClassDemand| demand.target.is_none() && demand.threshold.is_none();
        let all = self.demands().filter(asks);
        let mut free: Vec<TitleClass> = all.filter(|(_, d)| free(d)).map(|(class, _)| class).collect();
        free.reverse();
        if free.is_empty() {
            let may_lose = |demand: &ClassDemand| demand.target.unwrap_or(f64::INFINITY);
            let all = self.demands().filter(asks);
            let loosest = all.max_by(|left, right| may_lose(left.1).total_cmp(&may_lose(right.1)));
            free.extend(loosest.map(|(class, _)| class));
        }
        free
    }

    /// Whether the targets are met.
    pub fn meets(&self, blocking: &[f64]) -> bool {
        let classes = self.class.iter().zip(blocking);
        classes
            .filter_map(|((_, demand), blocked)| Some((demand.as_ref()?.target?, *blocked)))
            .all(|(target, blocked)| blocked <= target)
    }

    /// Requests that are refused in an hour.
    pub fn lost_per_hour(&self, blocking: &[f64]) -> f64 {
        let classes = self.class.iter().zip(blocking);
        classes.filter_map(|((_, demand), blocked)| Some(demand.as_ref()?.arrivals_per_hour * blocked)).sum()
    }

    /// The unit of which all rates are multiples, to a kbit/s, in Mbit/s.
    pub(super) fn unit(&self) -> f64 {
        let thousandths = |rate: f64| whole((rate * 1e3 - 1e-6).ceil());
        let rates = [self.rates.gold, self.rates.silver, self.rates.bronze].map(thousandths);
        f64::from(rates.into_iter().fold(0, common).max(1)) / 1e3
    }

    /// The site as the mathematics wants it, and the unit of its links in Mbit/s: the
    /// largest that all rates are multiples of, or as often that as keeps the work
    /// small. Rates are rounded up to it, links down.
    pub fn site(&self) -> Result<(Site, f64), PlanError> {
        self.check()?;
        let limited = self.limited();
        let mut places = (0..).zip(TitleClass::ALL).filter(|(_, class)| limited.contains(class));
        let first = places.next().map_or(0, |(place, _)| place);
        let mut units = 1_u32;
        loop {
            let grain = self.unit() * f64::from(units);
            let site = self.in_units(grain)?;
            if site.steps(first) <= ENOUGH_STEPS {
                return Ok((site, grain));
            }
            // A unit in which all qualities are the same would say nothing.
            if grain >= self.rates.gold {
                let what = format!("{} slots are too many beside such links and thresholds", site.slots);
                let hint = "leave a link out that does not fill, or thresholds that need not be kept";
                return wrong("site.slots", what, hint);
            }
            units = units.saturating_add(1 + units / 16);
        }
    }

    fn in_units(&self, grain: f64) -> Result<Site, PlanError> {
        let units = |rate: f64| whole((rate / grain - 1e-9).ceil());
        let mut streams = Vec::new();
        for (class, (_, demand)) in self.class.iter().enumerate() {
            let Some(demand) = demand else { continue };
            let erlangs = demand.arrivals_per_hour * demand.mean_minutes / 60.0;
            let mix = [
                (demand.gold, self.rates.gold),
                (demand.silver, self.rates.silver),
                (demand.bronze, self.rates.bronze),
            ];
            for (share, rate) in mix {
                for (part, to_origin) in [(demand.stored, 0), (1.0 - demand.stored, units(rate))] {
                    let erlangs = erlangs * share * part;
                    if erlangs > 0.0 {
                        streams.push(Stream { class, erlangs, to_viewers: units(rate), to_origin });
                    }
                }
            }
        }
        // Without demand there is nothing to refuse, and nothing to calculate with.
        if streams.is_empty() {
            return wrong("class", "no class asks for anything", "`arrivals_per_hour` above 0 in one class");
        }
        let capacity = |link: Option<f64>| link.map(|link| whole((link / grain + 1e-9).floor()));
        let threshold = |demand: &Option<ClassDemand>| demand.as_ref().and_then(|demand| demand.threshold);
        Ok(Site {
            slots: self.site.slots,
            to_viewers: capacity(self.site.to_viewers_mbps),
            to_origin: capacity(self.site.to_origin_mbps),
            classes: TitleClass::ALL.len(),
            streams,
            thresholds: self.class.iter().map(|(_, demand)| threshold(demand).unwrap_or(u32::MAX)).collect(),
        })
    }

    fn check(&self) -> Result<(), PlanError> {
        let mbps = "rates are in Mbit/s, above 0 and at most 100000";
        if !(1..=MAX_SLOTS).contains(&self.site.slots) {
            let what = format!("{} is not between 1 and {MAX_SLOTS}", self.site.slots);
            return wrong("site.slots", what, "a larger site is several nodes: plan each by itself");
        }
        let links =
            [("to_viewers_mbps", self.site.to_viewers_mbps), ("to_origin_mbps", self.site.to_origin_mbps)];
        for (name, link) in links {
            if let Some(link) = link {
                within(format!("site.{name}"), link, (0.0, 1e5), "leave a link out if it never fills")?;
            }
        }
        let rates = [("gold", self.rates.gold), ("silver", self.rates.silver), ("bronze", self.rates.bronze)];
        for (name, rate) in rates {
            within(format!("rates.{name}"), rate, (0.01, 1e5), mbps)?;
        }
        if self.rates.gold < self.rates.silver || self.rates.silver < self.rates.bronze {
            let hint = "a quality has all layers below it, so gold takes most and bronze least";
            return wrong("rates", "a lower quality takes more than a higher one", hint);
        }
        self.demands().try_for_each(|(class, demand)| self.check_class(class, demand))
    }

    fn check_class(&self, class: TitleClass, demand: &ClassDemand) -> Result<(), PlanError> {
        let field = |name: &str| format!("class.{class}.{name}");
        let share = "a share is a number from 0 to 1: one in a hundred is 0.01";
        within(
            field("arrivals_per_hour"),
            demand.arrivals_per_hour,
            (0.0, 1e9),
            "it is requests an hour; leave a class out that asks for nothing",
        )?;
        let minutes = "it is how long a viewing lasts on average, in minutes";
        within(field("mean_minutes"), demand.mean_minutes, (0.01, 1e4), minutes)?;
        for (name, value) in [
            ("gold", demand.gold),
            ("silver", demand.silver),
            ("bronze", demand.bronze),
            ("stored", demand.stored),
            ("target", demand.target.unwrap_or(0.0)),
        ] {
            within(field(name), value, (0.0, 1.0), share)?;
        }
        let sum = demand.gold + demand.silver + demand.bronze;
        if (sum - 1.0).abs() > 1e-6 {
            let what = format!("the shares of gold, silver and bronze add up to {sum:.4}, and not to 1");
            return wrong(
                format!("class.{class}"),
                what,
                "0.2, 0.5 and 0.3 would do, or `bronze = 1.0` alone",
            );
        }
        if demand.threshold.is_some_and(|threshold| threshold > self.site.slots) {
            return wrong(
                field("threshold"),
                format!(
                    "{} is more than the {} slots of the site",
                    demand.threshold.unwrap_or(0),
                    self.site.slots
                ),
                "a threshold is at most `site.slots`; leave it out, and it is calculated",
            );
        }
        if demand.threshold.is_some_and(|threshold| threshold == 0)
            && demand.target.is_some_and(|target| target < 1.0)
        {
            let hint = "a threshold of 0 refuses everybody: raise it, or leave the `target` out";
            return wrong(field("threshold"), "threshold and target contradict each other", hint);
        }
        if demand.stored < 1.0
            && self.site.to_origin_mbps.is_some_and(|link| link < self.rates.bronze)
            && demand.target.is_some_and(|target| target < 1.0 - demand.stored)
        {
            let hint = "raise `site.to_origin_mbps` or `stored`";
            return wrong(
                field("target"),
                "what is not stored cannot pass the link to the origin at all",
                hint,
            );
        }
        Ok(())
    }
}

fn common(left: u32, right: u32) -> u32 {
    if right == 0 { left } else { common(right, left % right) }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::as_conversions,
    reason = "it saturates"
)]
fn whole(value: f64) -> u32 {
    value as u32
}
