#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;
use TitleClass::{AdHoc, Archived, FirstTime};
use proptest::prelude::*;

const MB: u64 = 1_000_000;
const ALL_WELL: Result<(), Reason> = Ok(());

fn name(text: &str) -> TitleName {
    text.parse().unwrap()
}

fn of(class: TitleClass, title: &str) -> Demand {
    Demand {
        title: name(title),
        class,
        charge: Charge::Tested,
        slots: 1,
        rate: BitRate(2 * MB),
        source: Source::Held,
    }
}

fn copied(class: TitleClass, title: &str, size: u64) -> Demand {
    let source = Source::Copied { rate: BitRate(5 * MB), size: ByteCount(size) };
    Demand { source, ..of(class, title) }
}

/// Room for two viewings, one copy, and 10 MB.
fn small() -> ClassLimits {
    ClassLimits {
        slots: 2,
        to_viewers: BitRate(4 * MB),
        to_origin: BitRate(5 * MB),
        storage: ByteCount(10 * MB),
        ..ClassLimits::default()
    }
}

#[test]
fn a_viewer_over_one_limit_is_told_that_limit() {
    let wide = ClassLimits::default();
    let first = copied(AdHoc, "first", 8 * MB);
    let second = copied(AdHoc, "second", 8 * MB);
    let cases = [
        (ClassLimits { thresholds: ByClass { ad_hoc: 1, ..wide.thresholds }, ..wide }, Reason::Threshold),
        (ClassLimits { slots: 1, ..wide }, Reason::Slots),
        (ClassLimits { to_viewers: BitRate(3 * MB), ..wide }, Reason::ViewerLink),
        (ClassLimits { to_origin: BitRate(9 * MB), ..wide }, Reason::OriginLink),
        (ClassLimits { storage: ByteCount(15 * MB), ..wide }, Reason::Storage),
        (ClassLimits { max_titles: 1, ..wide }, Reason::Storage),
        (ClassLimits { max_grants: 1, ..wide }, Reason::Bound),
    ];
    for (limits, reason) in cases {
        let mut admission = ClassAdmission::new(limits);
        let grant = admission.admit(&first, ALL_WELL).unwrap();
        let before = (*admission.used(), admission.store().clone());
        assert_eq!(admission.admit(&second, ALL_WELL), Err(reason));
        assert_eq!((*admission.used(), admission.store().clone()), before, "a refusal takes nothing");
        assert_eq!((admission.refusals().of(AdHoc, reason), admission.refusals().iter().count()), (1, 1));
        assert!(admission.copied(&name("first")) && admission.release(grant.id));
        assert_eq!(*admission.used(), Usage::default());
        assert!(admission.admit(&second, ALL_WELL).is_ok(), "{reason:?} is over");
    }
}

#[test]
fn reasons_are_given_in_the_order_of_the_tests() {
    // Everything is too small; one limit after the other is lifted.
    let nothing = ClassLimits {
        thresholds: ByClass::of(|_| 0),
        slots: 0,
        to_viewers: BitRate(0),
        to_origin: BitRate(0),
        storage: ByteCount(0),
        max_grants: 0,
        max_titles: 0,
    };
    let wide = ClassLimits::default();
    let demand = copied(FirstTime, "news", MB);
    let mut admission = ClassAdmission::new(nothing);
    let mut standing = Err(Reason::BottomLine);
    let mut limits = nothing;
    let mut told = Vec::new();
    for step in 0..8 {
        told.push(admission.admit(&demand, standing).err());
        match step {
            0 => limits.thresholds = wide.thresholds,
            1 => standing = ALL_WELL,
            2 => limits.slots = 1,
            3 => limits.to_viewers = wide.to_viewers,
            4 => limits.to_origin = wide.to_origin,
            5 => (limits.storage, limits.max_titles) = (wide.storage, 1),
            _ => limits.max_grants = 1,
        }
        admission.set_limits(limits);
    }
    let mut expected: Vec<Option<Reason>> = Reason::ALL.map(Some).to_vec();
    expected.retain(|reason| *reason != Some(Reason::NothingToDisplace));
    expected.push(None);
    assert_eq!(told, expected);
}

#[test]
fn the_rules_about_users_speak_with_their_own_reasons() {
    use EntryKind::{Normal, Vip};
    assert_eq!(standing(5, 3, Normal, Some(Vip)), Ok(()));
    assert_eq!(standing(2, 3, Normal, Some(Vip)), Err(Reason::BottomLine));
    assert_eq!(standing(0, 3, Normal, Some(Vip)), Err(Reason::Slots));
    assert_eq!(standing(0, 3, Vip, Some(EntryKind::NormalDual)), Ok(()), "a backup would leave");
}

#[test]
fn the_second_viewer_of_a_title_needs_no_link_to_the_origin() {
    let mut admission = ClassAdmission::new(small());
    let first = admission.admit(&copied(Archived, "lesson", 8 * MB), ALL_WELL).unwrap();
    assert!(first.copy);
    assert_eq!(admission.used().to_origin, BitRate(5 * MB));
    // The link is full, but the title is on its way: no second copy.
    let second = admission.admit(&copied(Archived, "lesson", 8 * MB), ALL_WELL).unwrap();
    assert!(!second.copy);
    // The copy outlives who asked for it, and gives the link back once.
    assert!(admission.release(first.id) && admission.release(second.id));
    assert_eq!(admission.used().to_origin, BitRate(5 * MB));
    assert!(admission.copied(&name("lesson")) && !admission.copied(&name("lesson")));
    assert_eq!(admission.used().to_origin, BitRate(0));
    assert!(admission.store().holds(&name("lesson")));
    let third = admission.admit(&copied(Archived, "lesson", 8 * MB), ALL_WELL).unwrap();
    assert!(!third.copy && admission.used().to_origin == BitRate(0));
}

#[test]
fn ad_hoc_titles_leave_the_store_before_archived_before_first_time() {
    let mut admission = ClassAdmission::new(small());
    for (class, title) in [(FirstTime, "news"), (Archived, "lesson"), (AdHoc, "whim"), (AdHoc, "idea")] {
        let placed = admission.place(&name(title), class, ByteCount(2 * MB)).unwrap();
        assert_eq!(placed.evicted, []);
    }
    // "whim" is older than "idea" but has been watched since.
    let watched = admission.admit(&copied(AdHoc, "whim", 0), ALL_WELL).unwrap();
    assert!(admission.release(watched.id));
    // What comes is watched on, so that it cannot leave.
    admission.set_limits(ClassLimits { slots: 9, to_viewers: BitRate(18 * MB), ..small() });
    for (size, leaves) in [(4, "idea"), (2, "whim"), (2, "lesson"), (2, "news")] {
        let title = format!("instead of {leaves}");
        let grant = admission.admit(&copied(FirstTime, &title, size * MB), ALL_WELL).unwrap();
        assert_eq!(grant.evicted, [name(leaves)]);
        assert!(admission.copied(&name(&title)));
        assert_eq!(admission.store().taken(), ByteCount(10 * MB));
    }
    let one_more = admission.admit(&copied(FirstTime, "one more", MB), ALL_WELL);
    assert_eq!(one_more, Err(Reason::Storage), "all that is stored is being watched");
}

#[test]
fn a_copy_that_fails_gives_everything_back_and_viewings_end_in_peace() {
    let mut admission = ClassAdmission::new(small());
    let grant = admission.admit(&copied(AdHoc, "whim", 8 * MB), ALL_WELL).unwrap();
    assert!(admission.forget(&name("whim")) && !admission.forget(&name("whim")));
    assert_eq!((admission.used().to_origin, admission.store().taken()), (BitRate(0), ByteCount(0)));
    // It is copied anew for somebody else; the first one's end is not theirs.
    let other = admission.admit(&copied(AdHoc, "whim", 8 * MB), ALL_WELL).unwrap();
    assert!(admission.copied(&name("whim")) && admission.release(grant.id));
    assert_eq!(admission.place(&name("big"), Archived, ByteCount(9 * MB)), Err(Reason::Storage));
    assert!(admission.release(other.id) && !admission.release(other.id));
    let placed = admission.place(&name("big"), Archived, ByteCount(9 * MB)).unwrap();
    assert_eq!(placed.evicted, [name("whim")]);
}

#[test]
fn a_lower_quality_helps_against_full_resources_but_not_against_a_threshold() {
    let tight = ClassLimits { slots: 4, ..ClassLimits::default() };
    let mut admission = ClassAdmission::new(tight);
    let gold = Demand { slots: 3, ..of(AdHoc, "film") };
    let lower = [2, 1].map(|slots| Demand { slots, ..gold.clone() });
    let mut got = || admission.admit_first(&gold, &lower, ALL_WELL).map(|(at, _)| at);
    assert_eq!([got(), got(), got()], [Ok(0), Ok(2), Err(Reason::Slots)]);
    assert_eq!(admission.refusals().because(Reason::Slots), 1, "a request is refused once, not thrice");
    admission.set_limits(ClassLimits { thresholds: ByClass::of(|_| 2), slots: 9, ..tight });
    let refused = admission.admit_first(&gold, &lower, ALL_WELL);
    assert_eq!(refused, Err(Reason::Threshold));
    assert_eq!(admission.refusals().of(AdHoc, Reason::Threshold), 1);
}

/// A small stream of numbers; the seed is printed by the assertions.
struct Lot(u64);

impl Lot {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[test]
fn nothing_leaks_in_a_hundred_thousand_comings_and_goings() {
    let seed = 20_261_130;
    let mut lot = Lot(seed);
    let limits = ClassLimits {
        thresholds: ByClass { ad_hoc: 7, ..ByClass::of(|_| u64::MAX) },
        slots: 40,
        to_viewers: BitRate(34 * MB),
        to_origin: BitRate(25 * MB),
        storage: ByteCount(30 * MB),
        max_grants: 64,
        max_titles: 12,
    };
    let mut admission = ClassAdmission::new(limits);
    let mut open: Vec<(GrantId, Demand)> = Vec::new();
    let mut reasons = std::collections::BTreeSet::new();
    let mut admitted = 0;
    for step in 0..100_000 {
        let title = format!("t{}", lot.below(20));
        match lot.below(10) {
            0..=5 => {
                let class = TitleClass::ALL[usize::try_from(lot.below(3)).unwrap()];
                let source = match lot.below(3) {
                    0 => Source::Held,
                    1 => Source::Through { rate: BitRate(MB) },
                    _ => Source::Copied { rate: BitRate(5 * MB), size: ByteCount(lot.below(8) * MB) },
                };
                let demand = Demand { slots: 1 + lot.below(3), source, ..of(class, &title) };
                let standing = if lot.below(20) == 0 { Err(Reason::BottomLine) } else { Ok(()) };
                match admission.admit(&demand, standing) {
                    Ok(grant) => {
                        admitted += 1;
                        open.push((grant.id, demand));
                    }
                    Err(reason) => {
                        reasons.insert(reason);
                    }
                }
            }
            6 => _ = admission.copied(&name(&title)),
            7 => _ = lot.below(8) == 0 && admission.forget(&name(&title)),
            _ if open.is_empty() => {}
            _ => {
                let at = usize::try_from(lot.below(open.len().try_into().unwrap())).unwrap();
                let (id, _) = open.swap_remove(at);
                assert!(admission.release(id) && !admission.release(id), "seed {seed}, step {step}");
            }
        }
        let used = admission.used();
        let slots: u64 = open.iter().map(|(_, demand)| demand.slots).sum();
        let ad_hoc: u64 = open.iter().map(|(_, demand)| u64::from(demand.class == AdHoc)).sum();
        assert_eq!((used.slots, used.viewings.ad_hoc), (slots, ad_hoc), "seed {seed}, step {step}");
        assert!(slots <= 40 && ad_hoc <= 7 && used.to_viewers <= limits.to_viewers);
        assert!(used.to_origin <= limits.to_origin && admission.store().taken() <= limits.storage);
    }
    assert!(admitted > 10_000 && reasons.len() == 6, "{admitted} {reasons:?}");
    for (id, _) in open {
        assert!(admission.release(id));
    }
    for title in 0..20 {
        admission.copied(&name(&format!("t{title}")));
    }
    assert_eq!((*admission.used(), admission.viewings()), (Usage::default(), 0));
    // Nothing keeps a title any more: one of full size makes all others leave.
    assert!(admission.place(&name("all"), FirstTime, limits.storage).is_ok());
    assert_eq!(admission.store().len(), 1);
}

proptest! {
    #[test]
    fn ad_hoc_viewings_never_pass_their_threshold_and_others_get_every_free_slot(
        slots in 0_u64..8, threshold in 0_u64..8, asks in proptest::collection::vec((0_usize..3, any::<bool>()), 0..60)
    ) {
        let thresholds = ByClass { ad_hoc: threshold, ..ByClass::of(|_| u64::MAX) };
        let mut admission = ClassAdmission::new(ClassLimits { thresholds, slots, ..ClassLimits::default() });
        let mut open = Vec::new();
        for (class, ends) in asks {
            if let (true, Some(id)) = (ends, open.pop()) {
                prop_assert!(admission.release(id));
            }
            let (class, free) = (TitleClass::ALL[class], admission.used().slots < slots);
            let before = admission.used().viewings.ad_hoc;
            let answer = admission.admit(&of(class, "film"), Ok(()));
            let expected = match class {
                AdHoc if before >= threshold => Err(Reason::Threshold),
                AdHoc | Archived | FirstTime => if free { Ok(()) } else { Err(Reason::Slots) },
            };
            prop_assert_eq!(answer.as_ref().map(|_| ()).map_err(|why| *why), expected);
            open.extend(answer.map(|grant| grant.id));
            prop_assert!(admission.used().viewings.ad_hoc <= threshold);
        }
    }
}

#[test]
fn a_session_that_takes_the_link_leaves_it_to_its_copy_or_gives_it_back() {
    let kept = || Demand {
        source: Source::Kept { rate: BitRate(5 * MB), size: ByteCount(8 * MB) },
        ..of(Archived, "lesson")
    };
    // The copy arrives first: the link is taken until the viewing ends.
    let mut admission = ClassAdmission::new(small());
    let first = admission.admit(&kept(), ALL_WELL).unwrap();
    assert!(admission.copied(&name("lesson")));
    assert_eq!(admission.used().to_origin, BitRate(5 * MB));
    let second = admission.admit(&kept(), ALL_WELL).unwrap();
    assert!(first.copy && !second.copy);
    admission.release(first.id);
    assert_eq!(admission.used().to_origin, BitRate(0));
    // The viewing ends first: the copy goes on by the same link.
    let mut admission = ClassAdmission::new(small());
    let first = admission.admit(&kept(), ALL_WELL).unwrap();
    admission.release(first.id);
    assert_eq!(admission.used().to_origin, BitRate(5 * MB));
    assert!(admission.copied(&name("lesson")));
    assert_eq!(admission.used().to_origin, BitRate(0));
}

#[test]
fn an_enhancement_that_is_asked_for_again_and_again_is_refused_once_in_an_epoch() {
    use crate::node::autonomy::{Sla, UserId};
    let mut grants = Grants::new(ClassLimits::default(), false, Hold::Download);
    let film = name("film");
    let mut ask = |layer, epoch| {
        let told = grants.admit((UserId(1), layer), &film, (Sla::Normal, epoch), Err(Reason::Slots));
        assert_eq!(told, Err(Reason::Slots));
        grants.admission().refusals().because(Reason::Slots)
    };
    let enh1 = media::Layer::ENH1;
    assert_eq!([ask(enh1, 1), ask(enh1, 1), ask(enh1, 1)], [1, 1, 1]);
    assert_eq!(ask(enh1, 17), 2, "it seeks anew");
    let base = media::Layer::BASE;
    assert_eq!([ask(base, 17), ask(base, 17)], [3, 4]);
}
