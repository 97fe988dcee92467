//! Situation: a sweep runs in several parts, and its parts become one result.

#[path = "../../../command/report/tests/browser/mod.rs"]
mod browser;

use std::fs;
use std::path::{Path, PathBuf};

use apus_report::findings::Findings;
use apus_sweep::report::findings;
use apus_sweep::{
    Axis, Done, Lines, LinesError, MergeError, Plan, PlanPoint, PointRecord, Shard, SweepOptions,
    Transport, execute, merge, write,
};

/// A sweep of twelve points that takes no time.
fn options() -> SweepOptions {
    SweepOptions {
        workloads: vec!["w2".parse().unwrap(), "20000".parse().unwrap()],
        loads: vec![0.3, 0.6],
        shapes: vec!["2x3x1".parse().unwrap()],
        transports: vec![Transport::Apus, Transport::Dctcp, Transport::Oracle],
        parameters: vec![Axis { name: "max_overcommit", values: vec![2] }],
        messages: Some(300),
        warm_up: Some(100),
        ..SweepOptions::default()
    }
}

/// Runs the points of a plan that belong to the shard and are not in the file; returns the points
/// that ran.
fn run(plan: &Plan, shard: Shard, jobs: usize, path: &Path) -> Vec<Done> {
    let mut lines = Lines::open(path, &plan.name).unwrap();
    let points: Vec<&PlanPoint> = plan
        .points
        .iter()
        .filter(|point| shard.contains(point.index) && !lines.contains(point.index))
        .collect();
    let mut all = Vec::new();
    execute(plan, &points, jobs, &mut |_| {}, &mut |done: Done| {
        lines.add([done.record.clone()])?;
        all.push(done);
        Ok::<_, LinesError>(())
    })
    .unwrap();
    all
}

/// Returns the file of a single process, and the files of three shards; the last shard runs two
/// points at a time.
fn files(folder: &Path) -> (PathBuf, Vec<PathBuf>) {
    let plan = Plan::new(&options()).unwrap();
    let whole = folder.join("whole.jsonl");
    assert_eq!(run(&plan, Shard::ALL, 1, &whole).len(), 12);
    let parts: Vec<PathBuf> = (0..3).map(|i| folder.join(format!("part-{i}.jsonl"))).collect();
    for (index, path) in parts.iter().enumerate() {
        let shard = Shard::new(index as u32, 3).unwrap();
        assert_eq!(run(&plan, shard, 1 + index, path).len(), 4);
    }
    (whole, parts)
}

#[test]
fn shards_become_the_file_of_a_single_process() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, parts) = files(folder.path());
    let merged = folder.path().join("merged.jsonl");
    write(&merged, &merge(&parts).unwrap()).unwrap();
    assert_eq!(fs::read(&merged).unwrap(), fs::read(&whole).unwrap());
    let json = |files: &[PathBuf]| findings(&merge(files).unwrap(), &[]).outcome.json();
    assert_eq!(json(&parts), json(&[whole]));
}

#[test]
fn finished_points_do_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, _) = files(folder.path());
    let before = fs::read_to_string(&whole).unwrap();
    // As after a crash: some points are present, in any order.
    let some: Vec<&str> = before.lines().skip(3).step_by(2).collect();
    fs::write(&whole, some.join("\n")).unwrap();
    let plan = Plan::new(&options()).unwrap();
    assert_eq!(run(&plan, Shard::ALL, 2, &whole).len(), 12 - some.len());
    assert_eq!(fs::read_to_string(&whole).unwrap(), before);
    assert_eq!(run(&plan, Shard::ALL, 2, &whole).len(), 0);
}

#[test]
fn points_of_another_sweep_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, parts) = files(folder.path());
    let other = Plan::new(&SweepOptions { messages: Some(301), ..options() }).unwrap();
    let error = Lines::open(&whole, &other.name).unwrap_err();
    assert!(matches!(error, LinesError::OtherPlan { .. }), "{error}");
    let mixed = folder.path().join("mixed.jsonl");
    run(&other, Shard::new(0, 12).unwrap(), 1, &mixed);
    let error = merge(&[parts[0].clone(), mixed]).unwrap_err();
    assert!(matches!(error, MergeError::Plans { .. }), "{error}");
}

#[test]
fn missing_and_contradictory_points_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, parts) = files(folder.path());
    let error = merge(&parts[1..]).unwrap_err().to_string();
    assert_eq!(error, "4 of 12 points are missing: 0, 3, 6, 9");
    assert!(
        merge(&[whole.clone(), parts[0].clone()]).is_ok(),
        "twice the same is no contradiction"
    );

    let text = fs::read_to_string(&parts[0]).unwrap();
    let other = folder.path().join("other.jsonl");
    fs::write(&other, text.replacen("\"failed\":0", "\"failed\":1", 1)).unwrap();
    let error = merge(&[whole, other]).unwrap_err();
    assert!(matches!(error, MergeError::Different { index: 0, .. }), "{error}");

    let empty = folder.path().join("empty.jsonl");
    fs::write(&empty, "").unwrap();
    assert!(matches!(merge(&[empty]), Err(MergeError::Nothing)));
}

#[test]
fn a_file_without_points_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let (_, parts) = files(folder.path());
    let plan = Plan::new(&options()).unwrap();
    let broken = folder.path().join("broken.jsonl");
    let text = fs::read_to_string(&parts[0]).unwrap();
    for wrong in
        ["{}", "half a line", &text.lines().next().unwrap().replace("\"index\":0", "\"index\":12")]
    {
        fs::write(&broken, format!("{text}{wrong}\n")).unwrap();
        let error = Lines::open(&broken, &plan.name).unwrap_err().to_string();
        assert!(error.contains("line 5"), "{error}");
    }
    assert!(matches!(Lines::open(folder.path(), &plan.name), Err(LinesError::NotAFile(_))));
    assert!(matches!(
        write::<PointRecord>(Path::new("/dev/null"), &[]),
        Err(LinesError::NotAFile(_))
    ));
    assert!(Lines::open(&folder.path().join("no/such/place"), &plan.name).is_err());
}

#[test]
fn a_sweep_has_a_page_and_charts_that_load_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, _) = files(folder.path());
    let findings = findings(&merge(&[whole]).unwrap(), &[]);
    assert_eq!(findings.sections.len(), 1 + 4 + 2, "overview, settings, explanations");
    let page = findings.html();
    assert!(page.starts_with("<!doctype html>") && page.contains("w2 load=0.3"));
    for away in ["http:", "https:", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(away), "{away}");
    }
    // The name of a parameter has `inf` in it.
    let content = browser::content(&page).replace("informed_incoming", "");
    for broken in ["NaN", "inf", "undefined"] {
        assert!(!content.contains(broken), "the page shows `{broken}`");
    }
    let charts = page.matches("<figure class=\"plot\"").count();
    let tables = page.matches("<thead>").count();
    browser::open(&page, (charts, tables), "");
    let files = findings.svg_files();
    for (name, content) in &files {
        assert!(name.ends_with(".svg") && !name.contains('/'), "{name}");
        assert!(
            content.starts_with("<svg xmlns=") && content.trim_end().ends_with("</svg>"),
            "{name}"
        );
    }
    assert!(files.len() > 4 * 4, "{}", files.len());
}

#[test]
fn rows_are_named_by_transport_and_by_the_differences_of_a_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan::new(&SweepOptions {
        loads: vec![0.3],
        workloads: vec!["w2".parse().unwrap()],
        ..options()
    });
    let path = folder.path().join("one.jsonl");
    let done = run(&plan.unwrap(), Shard::ALL, 1, &path);
    let one = findings(&merge(&[path]).unwrap(), &done);
    let names = |findings: &Findings| -> Vec<String> {
        findings.outcome.rows.iter().map(|row| row.name.clone()).collect()
    };
    assert_eq!(names(&one), ["apus", "dctcp", "oracle"]);
    assert!(one.outcome.rows.iter().all(|row| row.get("packets_per_second").is_some()));
    let (whole, _) = files(folder.path());
    let many = findings(&merge(&[whole]).unwrap(), &[]);
    assert_eq!(names(&many)[..2], ["apus w2 load=0.3", "dctcp w2 load=0.3"]);
    assert!(many.outcome.rows[0].get("packets_per_second").is_none(), "it did not run here");
}

/// Published figures are shown next to a run in the same set-up, and only there.
#[test]
fn published_figures_are_shown_for_the_same_set_up_only() {
    let folder = tempfile::tempdir().unwrap();
    let few = |options: SweepOptions| {
        let plan = Plan::new(&SweepOptions { messages: Some(2_000), warm_up: Some(0), ..options })
            .unwrap();
        let path = folder.path().join(&plan.name);
        let done = run(&plan, Shard::ALL, 1, &path);
        findings(&merge(&[path]).unwrap(), &done).html()
    };
    let oracle = || vec![Transport::Oracle];
    let workloads = || vec!["w2".parse().unwrap()];
    let paper =
        SweepOptions { transports: oracle(), workloads: workloads(), ..SweepOptions::default() };
    assert!(few(paper.clone()).contains("SRPT-Oracle (published)"));
    assert!(!few(SweepOptions { loads: vec![0.79], ..paper.clone() }).contains("(published)"));
    let shapes = vec!["9x16x3".parse().unwrap()];
    assert!(!few(SweepOptions { shapes, ..paper }).contains("(published)"));
}
