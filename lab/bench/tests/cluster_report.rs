//! Situation: the findings of the cluster benchmark as a table, as JSON, as lines for a
//! spreadsheet, and as a page in a browser. The figures are invented, but of plausible size.

#[path = "../../../command/report/tests/browser/mod.rs"]
mod browser;

use std::collections::BTreeMap;

use apus::PollMode;
use apus_bench::cluster::report::{Analysis, Measured, Run, Settings, Sweep, Transport, Varied};
use apus_bench::cluster::{LevelLoad, SwitchLoad};
use apus_bench::slowdown::{CDF, Group, Summary, Tail};
use apus_report::findings::Findings;
use apus_report::machine::Machine;
use apus_report::result::{Outcome, PhaseCounts};
use serde_json::{Map, Value, json};

/// Characteristics of a transport: p99 slowdown of the shortest and of the longest messages, drops
/// in a run, mean queue in bytes, and processor time.
struct Kind {
    name: &'static str,
    beside: &'static [&'static str],
    short: f64,
    long: f64,
    drops: u64,
    queue: f64,
    cpu: f64,
}

const KINDS: [Kind; 6] = [
    Kind { name: "apus", beside: &[], short: 3.1, long: 9.0, drops: 0, queue: 21e3, cpu: 14.2 },
    Kind { name: "tcp", beside: &[], short: 58.0, long: 14.0, drops: 412, queue: 388e3, cpu: 9.9 },
    Kind {
        name: "tcp-pool",
        beside: &[],
        short: 51.0,
        long: 15.0,
        drops: 530,
        queue: 402e3,
        cpu: 10.8,
    },
    Kind {
        name: "tcp-per-request",
        beside: &[],
        short: 44.0,
        long: 17.0,
        drops: 1210,
        queue: 451e3,
        cpu: 12.1,
    },
    Kind {
        name: "apus",
        beside: &["tcp"],
        short: 4.4,
        long: 13.0,
        drops: 8,
        queue: 240e3,
        cpu: 14.9,
    },
    Kind {
        name: "tcp",
        beside: &["apus"],
        short: 63.0,
        long: 19.0,
        drops: 8,
        queue: 240e3,
        cpu: 10.3,
    },
];

/// Sizes that close each tenth of the messages of W3.
const SIZES: [u32; 10] = [36, 77, 110, 158, 268, 313, 402, 573, 1755, 1_000_000];

fn tail(p99: f64) -> Tail {
    Tail { p50: 1.0 + p99 / 6.0, p99, p999: 2.2 * p99 }
}

/// A run that differs slightly from the others.
fn run(kind: &Kind, number: usize) -> Run {
    let luck = [1.0, 1.06, 0.97, 1.02, 0.99][number % 5];
    let group = |(index, &upto): (usize, &u32)| {
        let share = index as f64 / 9.0;
        let p99 = luck * kind.short.powf(1.0 - share) * kind.long.powf(share);
        Group { upto, count: 4_000 + index as u64, tail: tail(p99) }
    };
    let groups: Vec<Group> = SIZES.iter().enumerate().map(group).collect();
    let short = tail(luck * kind.short);
    let base = 130.0;
    let micros = |share: f64| base * (1.0 + (short.p99 / 3.0) * -(1.0 - share).ln() / 4.6 * luck);
    let level = |index: usize| {
        let share = if kind.name == "apus" {
            [0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.06, 0.04][index]
        } else {
            f64::from(u8::from(index == 0))
        };
        LevelLoad {
            packets: (260_000.0 * share) as u64,
            bytes: (300e6 * share) as u64,
            drops: (kind.drops as f64 * share) as u64,
            queue_mean: kind.queue * luck * share,
            queue_max: (6.0 * kind.queue * share) as u64,
        }
    };
    let levels: Vec<LevelLoad> = (0..8).map(level).collect();
    Run {
        number,
        summary: Summary {
            messages: groups.iter().map(|group| group.count).sum(),
            groups,
            short,
            all: tail(1.1 * short.p99),
            short_us: Tail {
                p50: base * short.p50,
                p99: base * short.p99,
                p999: base * short.p999,
            },
            short_cdf_us: CDF.map(micros).to_vec(),
            mean_by_bytes: luck * kind.long / 3.0,
        },
        offered_load: 0.8,
        achieved_load: 0.8 - 0.001 * luck,
        throughput: 1.18e9 * luck,
        errors: 0,
        why: None,
        cpu_per_gb: kind.cpu * luck,
        late_p99_us: 4.0 * luck,
        idle: Some(0.47 * luck),
        switch: Some(SwitchLoad {
            queue_mean: levels.iter().map(|level| level.queue_mean).sum(),
            queue_max: 900_000,
            bytes: levels.iter().map(|level| level.bytes).sum(),
            levels,
        }),
        counters: BTreeMap::from([("handoffs".to_owned(), 1_000), ("aborts".to_owned(), 0)]),
        kill: None,
    }
}

fn transport(kind: &Kind) -> Transport {
    Transport {
        name: kind.name.to_owned(),
        beside: kind.beside.iter().map(ToString::to_string).collect(),
        settings: match kind.name {
            "apus" => "protocol defaults, 8 priorities".to_owned(),
            name => format!(
                "{name}: cubic, TCP_NODELAY, length before each message, <10 ms RTO> & so on"
            ),
        },
        runs: (0..3).map(|number| run(kind, number)).collect(),
        counts: PhaseCounts { measured: 3, ..PhaseCounts::default() },
        why_lost: None,
    }
}

fn settings() -> Settings {
    Settings {
        workload: "w3".to_owned(),
        mean_bytes: 2_928.4,
        short_bytes: 268,
        nodes: 8,
        link: 200_000_000,
        link_how: "auto: 47 % of the cores' time is not needed by apus, which needs most of it".to_owned(),
        load: 0.8,
        rate: 3_117.0,
        seconds: 5.0,
        runs: 3,
        seed: 1,
        mtu: 1_500,
        poll: PollMode::Block,
        processes: 1,
        receivers: 1,
        client_max: 200,
        priorities: 8,
        more: Map::from_iter([("unscheduled_bytes".to_owned(), json!(60_000))]),
        base: "the unloaded minimum of the fastest transport of each size".to_owned(),
        bound: vec![
            "a full packet of 1500 bytes takes 60 us on a link of 200 Mbit/s".to_owned(),
            "base of a short message: 130 us; bound of its p99: (130 + 2 x 60 + 2 x 60) / 130 = 2.8".to_owned(),
        ],
        command: "apus-lab bench cluster --workload w3 --runs 3".to_owned(),
    }
}

fn measured() -> Measured {
    let mut transports: Vec<Transport> = KINDS.iter().map(transport).collect();
    // The second run of this transport was lost.
    let pool = &mut transports[2];
    pool.runs.remove(1);
    pool.counts = PhaseCounts { measured: 2, repeated: 2, disturbed: 0, lost: 1 };
    pool.why_lost = Some("node h3 died".to_owned());
    Measured {
        settings: settings(),
        transports,
        notes: vec!["tcp-pool, run 2: no result after 3 attempts: node h3 died".to_owned()],
    }
}

/// Replaces machine-specific fields with fixed values.
fn anonymous(outcome: Outcome) -> Outcome {
    let (kernel, arch) = ("6.18.4".to_owned(), "x86_64".to_owned());
    let machine = Machine { cpus: 2, kernel, arch };
    Outcome { version: "0.1.0".to_owned(), commit: "0123456789ab".to_owned(), machine, ..outcome }
}

fn findings() -> Findings {
    let mut findings = Analysis::of(measured()).findings();
    findings.outcome = anonymous(findings.outcome);
    findings
}

#[test]
fn people_read_a_table() {
    insta::assert_snapshot!(findings().to_string());
}

#[test]
fn machines_read_the_fields_of_the_contract() {
    let json: Value = serde_json::from_str(&findings().outcome.json()).unwrap();
    let names =
        |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    let rows = json["rows"].as_array().unwrap();
    let rows: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    let row = &json["rows"][0];
    insta::assert_snapshot!(format!(
        "rows: {}\nrow: {}\nby_size: {}\nlevels: {}\nconfig: {}\nratios: {}\ncomparison: {}\nall: {}",
        rows.join(", "),
        names(row),
        names(&row["by_size"][0]),
        names(&row["levels"][0]),
        names(&json["config"]),
        names(&json["ratios"]),
        names(&json["comparisons"][0]),
        names(&json),
    ));
    assert_eq!((&row["short_p99"], &row["short_p99_min"]), (&json!(3.1), &json!(3.007)));
    assert_eq!((&row["messages"], &row["errors"]), (&json!(3 * 40_045), &json!(0)));
    assert_eq!((&row["offered_load"], &json["config"]["link_mbps"]), (&json!(0.8), &json!(200.0)));
}

/// Disturbances of a whole run cancel out, even if another run is missing.
#[test]
fn ratios_are_of_the_same_run() {
    let json: Value = serde_json::from_str(&findings().outcome.json()).unwrap();
    for (name, quotient) in [("tcp", 58.0 / 3.1), ("tcp-pool", 51.0 / 3.1)] {
        let ratio = &json["ratios"][format!("short_p99 {name}/apus")];
        for end in ["median", "min", "max"] {
            assert!(
                (ratio[end].as_f64().unwrap() / quotient - 1.0).abs() < 1e-4,
                "{name}: {ratio}"
            );
        }
    }
    let beside = &json["ratios"]["short_p99 tcp beside apus/tcp"];
    assert!((beside["median"].as_f64().unwrap() / (63.0 / 58.0) - 1.0).abs() < 1e-4, "{beside}");
}

#[test]
fn what_went_wrong_is_said() {
    let mut measured = measured();
    let [apus, tcp, pool, ..] = &mut measured.transports[..] else { unreachable!("six of them") };
    apus.runs[1].errors = 3;
    apus.runs[1].why = Some("timed out".to_owned());
    tcp.runs[0].achieved_load = 0.4;
    tcp.runs[2].idle = Some(0.12);
    pool.runs.clear();
    let findings = Analysis::of(measured).findings();
    insta::assert_snapshot!(findings.outcome.notes.join("\n"));
    let json: Value = serde_json::from_str(&findings.outcome.json()).unwrap();
    let row = json["rows"].as_array().unwrap().last().unwrap();
    assert_eq!((&row["name"], &row["missing"]), (&json!("tcp-pool"), &json!("node h3 died")));
    assert_eq!((&row["phases"]["lost"], row.get("short_p99")), (&json!(1), None));
    assert!(findings.outcome.is_answered(), "apus and others have results");
    let page = browser::content(&findings.html());
    assert!(page.contains("tcp-pool has no result") && page.contains("timed out"), "{page}");
}

/// One transport, one run, an external switch: less to show, and no comparisons.
fn least() -> Findings {
    let mut measured = measured();
    measured.transports.truncate(1);
    measured.transports[0].runs.truncate(1);
    measured.transports[0].runs[0].switch = None;
    measured.transports[0].runs[0].idle = None;
    Analysis::of(measured).findings()
}

#[test]
fn what_is_not_known_is_not_shown() {
    let findings = least();
    assert!(findings.outcome.ratios.is_empty() && findings.outcome.comparisons.is_empty());
    let json: Value = serde_json::from_str(&findings.outcome.json()).unwrap();
    assert_eq!(
        (&json["rows"][0]["idle"], &json["rows"][0]["levels"]),
        (&json!(null), &json!(null))
    );
    let text = findings.to_string();
    assert!(text.contains('–') && !text.contains("NaN"), "{text}");
    // Slowdown, latency, far tail; throughput, processor time.
    browser::open(&findings.html(), (5, 3), "");
}

#[test]
fn without_a_successful_run_there_is_still_a_report() {
    let mut measured = measured();
    measured.transports.iter_mut().for_each(|transport| transport.runs.clear());
    let findings = Analysis::of(measured).findings();
    assert_eq!(findings.outcome.missing().count(), findings.outcome.rows.len());
    assert!(!findings.outcome.is_answered());
    assert!(findings.to_string().contains("apus has no result: none of its 3 runs succeeded"));
    browser::open(&findings.html(), (3, 3), "");
}

#[test]
fn spreadsheets_read_every_run() {
    let files = findings().csv_files;
    let heads: Vec<String> = files
        .iter()
        .map(|(name, content)| {
            let lines: Vec<&str> = content.lines().collect();
            format!("{name}, {} lines\n{}\n{}", lines.len(), lines[0], lines[lines.len() - 1])
        })
        .collect();
    insta::assert_snapshot!(heads.join("\n"));
}

#[test]
fn charts_are_files_of_their_own() {
    let files = findings().svg_files();
    let names: Vec<&str> = files.iter().map(|(name, _)| &name[..]).collect();
    let expected = [
        "slowdown-p99.svg",
        "short-cdf.svg",
        "ratios.svg",
        "slowdown-p999.svg",
        "beside.svg",
        "switch-queue.svg",
        "switch-drops.svg",
        "switch-bytes.svg",
        "throughput.svg",
        "cpu.svg",
        "idle.svg",
    ];
    assert_eq!(names, expected);
    assert!(files.iter().all(|(_, content)| content.starts_with("<svg xmlns=")));
}

/// A page is self-contained and intact.
fn is_whole(page: &str) {
    for away in ["http:", "https:", "//", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(away), "{away}");
    }
    let content = browser::content(page);
    for broken in ["NaN", "inf", "undefined"] {
        assert!(!content.contains(broken), "the page shows `{broken}`");
    }
}

#[test]
fn a_reader_plays_with_the_page() {
    let page = findings().html();
    is_whole(&page);
    assert!(browser::content(&page).contains("apus-lab bench cluster --workload w3 --runs 3"));
    let asked = r#"
        const first = document.querySelector("figure.plot");
        const svg = first.querySelector("svg.chart");
        const point = first.querySelector('g[data-name="tcp"]:nth-of-type(n) circle');
        const { left, top } = point.getBoundingClientRect();
        svg.dispatchEvent(new PointerEvent("pointermove", { clientX: left + 3, clientY: top + 3 }));
        const tip = [...document.querySelector(".tip").children].map((each) => each.textContent);
        const button = first.querySelector(".legend button");
        button.click();
        return [tip.length, tip[0], button.textContent.trim(), button.getAttribute("aria-pressed"),
                first.querySelectorAll("g.off[data-name=apus]").length];
    "#;
    // 11 charts; sizes, ratios, priorities, machinery, runs.
    if let Some(answer) = browser::open(&page, (11, 5), asked) {
        // Median and 99th percentile of each transport, below their heading.
        assert_eq!(answer, json!([1 + 2 * KINDS.len(), "up to 36 B", "apus", "false", 2]));
    }
}

/// Returns the results of a varied setting.
fn varied(parameter: &str, values: &[&str]) -> Varied {
    let point = |(index, value): (usize, &&str)| {
        let mut measured = measured();
        measured.settings.more.insert(parameter.to_owned(), json!(value));
        measured.transports.truncate(2);
        for transport in &mut measured.transports {
            for run in &mut transport.runs {
                run.summary.short.p99 *= 1.0 + 0.2 * index as f64;
            }
        }
        ((*value).to_owned(), measured)
    };
    let points = values.iter().enumerate().map(point).collect();
    Varied { parameter: parameter.to_owned(), otherwise: "7".to_owned(), points }
}

fn sweep() -> Sweep {
    let varied = vec![varied("poll_usecs", &["0", "10", "50", "auto"])];
    let mut sweep = Sweep::new(varied, "apus-lab bench sweep --param poll_usecs=0,10,50,auto");
    sweep.outcome = anonymous(sweep.outcome);
    sweep
}

#[test]
fn a_sweep_is_a_table_and_rows() {
    let sweep = sweep();
    insta::assert_snapshot!(sweep.findings().to_string());
    let json: Value = serde_json::from_str(&sweep.outcome.json()).unwrap();
    assert_eq!(json["rows"][3]["name"], "tcp poll_usecs=10");
    let values = json!({"values": ["0", "10", "50", "auto"], "otherwise": "7"});
    assert_eq!(json["config"]["sweep"], json!({ "poll_usecs": values }));
    assert_eq!(json["config"].get("poll_usecs"), None, "it is not the same for all");
    assert!(json["ratios"]["short_p99 tcp/apus poll_usecs=50"]["median"].is_number());
    let findings = sweep.findings();
    assert_eq!(findings.svg_files().len(), 4);
    let values: Vec<String> = sweep.points().map(|(value, _)| value).collect();
    assert_eq!(values, ["poll_usecs=0", "poll_usecs=10", "poll_usecs=50", "poll_usecs=auto"]);
    let (name, runs) = &findings.csv_files[0];
    assert_eq!((name.as_str(), runs.lines().count()), ("runs.csv", 1 + 4 * 2 * 3));
    assert!(runs.starts_with("parameter,value,transport,run,short_p50,"), "{runs}");
    assert!(runs.lines().nth(1).unwrap().starts_with("poll_usecs,0,apus,1,"), "{runs}");
}

#[test]
fn several_settings_are_varied_one_at_a_time() {
    let mut load = varied("load", &["0.5", "0.8"]);
    for (index, (_, measured)) in load.points.iter_mut().enumerate() {
        measured.settings.load = [0.5, 0.8][index];
    }
    load.points[1].1.transports[1].runs.clear();
    let varied = vec![load, varied("receivers", &["1", "2"])];
    let sweep = Sweep::new(varied, "apus-lab bench sweep ...").findings();
    let text = sweep.to_string();
    assert!(text.contains("slowdown by load (otherwise 7)"), "{text}");
    assert!(text.contains("slowdown by receivers (otherwise 7)"), "{text}");
    assert!(text.contains("note: tcp-pool, run 2: no result"), "all values have it: {text}");
    assert!(text.contains("note: load=0.8: tcp has no result"), "{text}");
    assert_eq!(sweep.outcome.missing().collect::<Vec<_>>(), ["tcp load=0.8"]);
    let page = sweep.html();
    is_whole(&page);
    let title = "w3, 8 nodes, links of 200 Mbit";
    assert!(page.contains("<h2>receivers</h2>") && page.contains(title), "{page}");
    let files: Vec<String> = sweep.svg_files().into_iter().map(|(name, _)| name).collect();
    assert_eq!((files.len(), files[0].as_str()), (8, "load-short-p99.svg"));
}

#[test]
fn a_sweep_has_a_page() {
    let page = sweep().findings().html();
    is_whole(&page);
    let asked = r#"
        return [...document.querySelectorAll("figure.plot")].map((figure) =>
          figure.querySelectorAll("circle").length + figure.querySelectorAll(".whisker").length);
    "#;
    if let Some(answer) = browser::open(&page, (4, 2), asked) {
        assert_eq!(answer, json!([16, 16, 16, 16]));
    }
}
