#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests state exact values")]

use super::*;

fn draw(figure: Figure, options: Options) -> Report {
    run(figure, &options, &|_, _| ()).unwrap()
}

#[test]
fn a_figure_is_written_whole_and_nothing_else_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let report = draw(Figure::Reliability, Options::default());
    report.write(&folder.path().join("new")).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(folder.path().join("new"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let files = ["region-gold.svg", "region-mix.svg", "region.csv", "reliability.csv", "reliability.svg"];
    assert_eq!(names, files);
    let told = report.to_string();
    assert!(told.contains("most reliable number of layers for gold | 3 | 3 | yes\n"), "{told}");
}

#[test]
fn a_point_of_the_surface_has_its_claims_its_csv_and_its_maps() {
    let options = Options { users: Some(200), seeds: Some(2), strict: true, ..Options::default() };
    let seen = std::sync::Mutex::new(Vec::new());
    let report =
        run(Figure::Continuity, &options, &|done, of| seen.lock().unwrap().push((done, of))).unwrap();
    assert_eq!(seen.into_inner().unwrap().last(), Some(&(18, 18)));
    let names: Vec<&str> = report.files.iter().map(|file| file.name.as_str()).collect();
    let maps = ["continuity-with.svg", "continuity-without.svg", "continuity-strict.svg"];
    assert_eq!(names, [["continuity.csv", "continuity.svg"].as_slice(), &maps].concat());
    assert_eq!(report.files[0].text.lines().count(), 1 + 3 * 3);
    assert!(report.claims.iter().all(|claim| claim.holds), "{report}");
    let again = draw(Figure::Continuity, options);
    assert_eq!(again, report, "whoever is done first, the figure is the same");
}

#[test]
fn admission_has_all_its_tables_and_its_claims_hold() {
    let report = draw(Figure::Admission, Options { seeds: Some(2), ..Options::default() });
    let names: Vec<&str> = report.files.iter().map(|file| file.name.as_str()).collect();
    let expected = [
        "admission-thresholds.csv",
        "admission-thresholds.svg",
        "admission-demand.csv",
        "admission-demand.svg",
        "admission-choice.csv",
        "admission-extremes.csv",
        "admission-simulated.csv",
        "admission-copied-first.csv",
        "admission-downgrade.csv",
        "admission-redirection.csv",
    ];
    assert_eq!(names, expected);
    assert!(report.files[0].text.contains("40.00,25,0.11207,0.11207,0.41480,94.443\n"));
    // Of two runs the intervals say little; of the claims without them all hold.
    let no: Vec<_> = report.claims.iter().filter(|claim| !claim.holds).collect();
    assert!(no.iter().all(|claim| claim.claim.contains("intervals")), "{no:?}");
}

#[test]
fn cooperating_proxies_have_their_tables_and_pictures() {
    let options = Options { seeds: Some(1), ..Options::default() };
    let mut report = draw(Figure::Quality, options);
    report.append(draw(Figure::Buffer, options));
    let names: Vec<&str> = report.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["quality.csv", "quality.svg", "quality-ladders.svg", "buffer.csv", "buffer.svg"]);
    // Four ladders, four schemes and ten clients; six sizes.
    assert_eq!([0, 3].map(|file| report.files[file].text.lines().count()), [1 + 4 * 4 * 10, 1 + 6]);
    assert!(report.files[0].text.contains("\n10-whole,cooperative-prefetch,10,"), "{}", report.files[0].text);
    assert!(
        report
            .files
            .iter()
            .filter(|file| file.text.starts_with("<svg"))
            .all(|file| file.text.contains("<polyline"))
    );
    assert!(!report.claims.is_empty(), "{report}");
}
