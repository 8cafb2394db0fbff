#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use sim::theory::{Load, System};

fn class(arrivals: f64, minutes: f64, target: Option<f64>) -> ClassDemand {
    ClassDemand {
        arrivals_per_hour: arrivals,
        mean_minutes: minutes,
        gold: 1.0,
        silver: 0.0,
        bronze: 0.0,
        stored: 1.0,
        target,
        threshold: None,
    }
}

/// 100 slots and 33.33 erlangs of each class, at most 1 % of the first two refused.
fn equal() -> PlanFile {
    PlanFile {
        site: SiteFile { slots: 100, to_viewers_mbps: None, to_origin_mbps: None },
        rates: Rates { gold: 4.0, silver: 2.0, bronze: 1.0 },
        class: media::ByClass {
            archived: Some(class(100.0, 20.0, Some(0.01))),
            first_time: Some(class(100.0, 20.0, Some(0.01))),
            ad_hoc: Some(class(100.0, 20.0, None)),
        },
    }
}

#[test]
fn the_threshold_with_the_least_loss_is_the_exact_one_with_all_its_digits() {
    let report = plan(&equal()).unwrap();
    assert_eq!(
        (report.met, report.classes[2].threshold, report.classes[0].threshold),
        (true, Some(19), None)
    );
    let rho = 100.0 / 3.0;
    let loads = vec![Load::of(rho), Load::of(rho), Load::of(rho).up_to(19)];
    let exact = System::new(100, loads).unwrap().blocking();
    for (row, exact) in report.classes.iter().zip(exact) {
        assert!((row.blocking - exact).abs() < 1e-12, "{row:?} {exact}");
    }
    assert_eq!(report.cliff.iter().map(|cliff| cliff.more_percent).collect::<Vec<_>>(), CLIFF);
    assert!(!report.cliff[0].met, "ten percent more is over the cliff");
    assert!(report.svg.starts_with("<svg") && report.to_string().contains("targets met\n"));
}

#[test]
fn a_link_to_the_viewers_counts_by_quality_and_one_to_the_origin_by_what_is_not_stored() {
    let free = plan(&equal()).unwrap();
    let mut narrow = equal();
    // Gold takes 4 of 300 Mbit/s: 75 viewers.
    narrow.site.to_viewers_mbps = Some(300.0);
    let rho = 100.0 / 3.0;
    let loads = vec![Load::of(rho), Load::of(rho), Load::of(rho).up_to(0)];
    let exact = System::new(75, loads).unwrap().blocking();
    let report = plan(&narrow).unwrap();
    assert!(!report.met && (report.classes[0].blocking - exact[0]).abs() < 1e-12, "{report}");
    assert_eq!((report.slots_needed, report.slots_tried), (None, Some(MAX_SLOTS)), "the link is too small");
    let mut distant = equal();
    distant.site.to_origin_mbps = Some(40.0);
    distant.class.ad_hoc.as_mut().unwrap().stored = 0.2;
    let distant = plan(&distant).unwrap();
    assert!(distant.classes[2].blocking > free.classes[2].blocking);
}

#[test]
fn a_missed_target_says_with_how_many_slots_it_could_be_met() {
    let mut small = equal();
    small.site.slots = 60;
    let report = plan(&small).unwrap();
    let needed = report.slots_needed.unwrap();
    assert!(!report.met && report.classes[2].threshold == Some(0));
    let met = |slots| {
        let mut file = small.clone();
        file.site.slots = slots;
        plan(&file).unwrap().met
    };
    assert!(met(needed) && !met(needed - 1));
}

#[test]
fn nonsense_and_contradictions_are_told_with_their_field() {
    type Spoil = fn(&mut PlanFile);
    let cases: [(&str, Spoil); 9] = [
        ("site.slots", |file| file.site.slots = 0),
        ("site.to_viewers_mbps", |file| file.site.to_viewers_mbps = Some(f64::NAN)),
        ("rates.gold", |file| file.rates.gold = -1.0),
        ("rates", |file| file.rates.bronze = 3.0),
        ("class.archived", |file| file.class.archived.as_mut().unwrap().gold = 0.5),
        ("class.ad-hoc.mean_minutes", |file| file.class.ad_hoc.as_mut().unwrap().mean_minutes = 0.0),
        ("class.archived.threshold", |file| file.class.archived.as_mut().unwrap().threshold = Some(0)),
        ("class.first-time.threshold", |file| file.class.first_time.as_mut().unwrap().threshold = Some(101)),
        ("class.ad-hoc.arrivals_per_hour", |file| {
            file.class.ad_hoc.as_mut().unwrap().arrivals_per_hour = 1.1e9;
        }),
    ];
    for (field, spoil) in cases {
        let mut file = equal();
        spoil(&mut file);
        let error = plan(&file).unwrap_err();
        assert!(error.to_string().starts_with(&format!("`{field}`: ")), "{field}: {error}");
        assert!(!error.hint().is_empty());
    }
}

#[test]
fn a_demand_beyond_all_measure_is_planned_for_with_all_digits() {
    let mut file = equal();
    file.class.ad_hoc = Some(class(1e6, 60.0, None));
    let report = plan(&file).unwrap();
    let (rho, threshold) = (100.0 / 3.0, report.classes[2].threshold.unwrap());
    let loads = vec![Load::of(rho), Load::of(rho), Load::of(1e6).up_to(threshold)];
    let exact = System::new(100, loads).unwrap().blocking();
    for (row, exact) in report.classes.iter().zip(exact) {
        assert!((row.blocking - exact).abs() < 1e-12, "{row:?} {exact}");
    }
    assert!(report.met && report.classes[0].blocking > 0.005, "{report}");
    for more in [1e9, 1.0] {
        file.class.archived = Some(class(more, 1e4, Some(0.01)));
        file.class.first_time = Some(class(more, 0.01, Some(1.0)));
        let report = plan(&file).unwrap();
        assert!(report.classes.iter().all(|row| (0.0..=1.0).contains(&row.blocking)), "{report}");
    }
}

#[test]
fn a_threshold_of_the_plan_is_used_and_a_better_one_is_named() {
    let with = |threshold| {
        let mut file = equal();
        file.class.ad_hoc.as_mut().unwrap().threshold = Some(threshold);
        plan(&file).unwrap()
    };
    let wrong = with(60);
    assert_eq!((wrong.met, wrong.classes[2].threshold, wrong.threshold_needed), (false, Some(60), Some(19)));
    assert!(wrong.to_string().ends_with("threshold of the plan; 19 would do\n"), "{wrong}");
    // As many as there are slots is none, and is not looked for either.
    let none = with(100);
    assert_eq!((none.met, none.classes[2].threshold, none.threshold_needed), (false, None, Some(19)));
    assert!((none.classes[2].blocking - none.classes[0].blocking).abs() < 1e-14);
    let nobody = with(0);
    assert!(nobody.met && (nobody.classes[2].blocking - 1.0).abs() < 1e-15);
}

#[test]
fn the_class_that_may_lose_most_stands_back_and_then_the_one_before_it() {
    let mut targets = equal();
    targets.class.ad_hoc.as_mut().unwrap().target = Some(0.5);
    assert_eq!(plan(&targets).unwrap().classes[2].threshold, Some(19), "half of it may be lost");
    // Of two without a target, the one whose viewings are long.
    let mut long = equal();
    (long.class.archived, long.class.first_time) =
        (Some(class(100.0, 20.0, Some(0.01))), Some(class(20.0, 100.0, None)));
    let report = plan(&long).unwrap();
    assert!(report.met && report.classes[1].threshold.is_some() && report.classes[2].threshold.is_none());
    // One alone is not enough.
    let mut both = equal();
    both.class.archived = Some(class(210.0, 20.0, Some(0.01)));
    both.class.first_time = Some(class(200.0, 20.0, None));
    let report = plan(&both).unwrap();
    let thresholds = (report.classes[1].threshold, report.classes[2].threshold);
    assert!(report.met && thresholds.0.is_some_and(|t| t > 0) && thresholds.1 == Some(0), "{report}");
    // Nothing is let in only to gain nothing.
    let mut light = equal();
    light.class.archived.as_mut().unwrap().arrivals_per_hour = 0.0;
    assert_eq!(plan(&light).unwrap().classes[2].threshold, None);
}

#[test]
fn a_large_site_with_a_full_link_is_calculated_in_the_units_of_its_rates() {
    let mix = |demand: ClassDemand| ClassDemand { gold: 0.2, silver: 0.5, bronze: 0.3, ..demand };
    let mut file = equal();
    file.site = SiteFile { slots: 1000, to_viewers_mbps: Some(900.0), to_origin_mbps: None };
    file.rates = Rates { gold: 4.0, silver: 2.0, bronze: 1.0 };
    let open = |demand| Some(ClassDemand { threshold: Some(1000), ..mix(demand) });
    file.class.archived = open(class(600.0, 20.0, None));
    file.class.first_time = None;
    file.class.ad_hoc = open(class(900.0, 20.0, None));
    let report = plan(&file).unwrap();
    let load = |share: f64, units| Load::of(500.0 * share).taking(units);
    let system = System::new(900, vec![load(0.2, 4), load(0.5, 2), load(0.3, 1)]).unwrap();
    let by_quality = sim::theory::limits::kaufman_roberts(&system);
    let exact = 0.2 * by_quality[0] + 0.5 * by_quality[1] + 0.3 * by_quality[2];
    assert!((report.classes[0].blocking - exact).abs() < 1e-9, "{report} {exact}");
    assert_eq!((report.grain_mbps, report.rounded), (1.0, false));
    // Rates of which nothing is a multiple are rounded where the site is large.
    file.rates = Rates { gold: 4.001, silver: 2.003, bronze: 1.009 };
    let (_, grain) = file.site().unwrap();
    assert!(grain > 0.08 && grain < 0.12, "{grain}");
    file.class.archived.as_mut().unwrap().threshold = Some(500);
    let error = file.site().unwrap_err().to_string();
    assert_eq!(error, "`site.slots`: 1000 slots are too many beside such links and thresholds");
}
