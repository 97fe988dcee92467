//! Views of reports, with and without data.

use std::collections::BTreeMap;

use crate::merge::MergedTraces;
use crate::report::RpcFilter;
use crate::report::rpcs::RpcOrder;
use apus_trace::clock::{Calibration, ClockReading, ClockSource};
use apus_trace::{Event, Head, Peer, PeerIndex, Record, Rpc, Side, Thread, Trace};

use super::report_view::ReportView;

/// Creates a trace of one thread on a host whose clock is `ahead` nanoseconds ahead.
fn trace(
    program: &str,
    ahead: u64,
    peer: [&str; 2],
    records: &[(u64, Option<Side>, Event, u32, u64)],
) -> (String, Trace) {
    let up = 1_000_000_000 + ahead * 3;
    let point = |at: u64| ClockReading {
        ticks: up + at,
        monotonic: up + at,
        realtime: 1_700_000_000_000_000_000 + ahead + at,
    };
    let [endpoint, address] = peer.map(|text| text.parse().unwrap());
    let record = |&(at, side, event, a, b): &(u64, Option<Side>, Event, u32, u64)| match side {
        Some(side) => Record::of_rpc(up + at, Rpc::new(2, side, PeerIndex(1)), event, a, b),
        None => Record::of_thread(up + at, event, a, b),
    };
    let head = Head {
        host: format!("{program}'s <host>"),
        program: program.to_owned(),
        pid: 7,
        clock: Calibration {
            source: ClockSource::Monotonic,
            start: point(0),
            end: point(1_000_000_000),
        },
        period: 16,
        frozen: None,
        peers: vec![Peer { endpoint, address }],
        events: Event::ALL.iter().map(|it| (*it as u16, it.name().to_owned())).collect(),
        values: BTreeMap::new(),
    };
    let threads = vec![Thread {
        name: "main".to_owned(),
        tid: 7,
        cpu: 1,
        overwritten: 0,
        records: records.iter().map(record).collect(),
    }];
    (format!("{program}.tt"), Trace { head, threads })
}

/// Creates an RPC of two packets with a grant and a RESEND, and a gap.
fn merged() -> MergedTraces {
    use Event::{
        Call, DataReceived, DataSent, FromKernel, GrantReceived, GrantSent, GrantUsed, HandedOff,
        Parsed, Pass, Queued, Reply, RequestReturned, ResendSent, Returned, Send, ToKernel, Woken,
    };
    let (client, server) = (Some(Side::Client), Some(Side::Server));
    let one = trace(
        "client",
        0,
        ["10.0.0.1:999", "10.0.0.2:4000"],
        &[
            (1_000, client, Call, 0, 2_000),
            (1_500, client, Queued, 0, 2_000),
            (1_800, client, DataSent, 1_000, 1 << 32),
            (2_000, client, ToKernel, 1, 0),
            (9_000, client, GrantReceived, 0, 2_000),
            (9_100, client, GrantUsed, 0, 2_000),
            (9_100, client, DataSent, 1_000, 1_000 | 1 << 32),
            (9_200, client, ToKernel, 1, 1_000),
            (30_000, client, FromKernel, 1, 0),
            (30_100, client, Parsed, 0, 50),
            (30_300, client, HandedOff, 0, 5),
            (31_000, client, Woken, 0, 5),
            (31_500, client, Returned, 0, 50),
            (900_000, None, Pass, 1, 800_000),
        ],
    );
    let two = trace(
        "server",
        5_000_000,
        ["0.0.0.0:4000", "10.0.0.1:999"],
        &[
            (5_000, server, FromKernel, 1, 0),
            (5_100, server, DataReceived, 1_000, 1 << 32),
            (5_200, server, GrantSent, 0, 2_000),
            (11_500, server, ResendSent, 1_000, 1_000),
            (12_000, server, FromKernel, 1, 0),
            (12_200, server, DataReceived, 1_000, 1_000 | 1 << 32),
            (12_300, server, Parsed, 0, 2_000),
            (12_900, server, RequestReturned, 0, 2_000),
            (25_000, server, Reply, 0, 50),
            (25_200, server, Queued, 0, 50),
            (25_500, server, ToKernel, 1, 0),
            (26_000, None, Send, 1, 400),
        ],
    );
    MergedTraces::of(vec![one, two]).unwrap()
}

/// Renders all reports.
fn reports(merged: &MergedTraces) -> Vec<ReportView> {
    let all = RpcFilter::default();
    vec![
        super::timeline(merged, &all),
        super::delays(merged, &all),
        super::rtt(merged, &all),
        super::rpcs(merged, &all, RpcOrder::Rtt, 20),
        super::grants(merged, 1_000),
        super::handoffs(merged, &all),
        super::losses(merged, &all),
        super::cores(merged, 50_000),
    ]
}

#[test]
fn text_has_tables() {
    let view: Vec<String> = reports(&merged()).iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(view.join("\n════\n\n"));
}

#[test]
fn json_is_one_object() {
    for view in reports(&merged()) {
        let json: serde_json::Value = serde_json::from_str(&view.json()).unwrap();
        assert!(json["experiment"].as_str().unwrap().starts_with("trace "));
        assert_eq!(json["traces"][1]["source"], "server.tt");
        assert_eq!(json["clocks"][1]["by"], "packets");
        assert!(json["config"].is_object());
    }
    let timeline = &reports(&merged())[0];
    let json: serde_json::Value = serde_json::from_str(&timeline.json()).unwrap();
    let way = &json["ways"][0];
    assert_eq!((&way["way"], &way["rtt"]["p50_us"]), (&"network".into(), &30.5.into()));
    assert_eq!(
        (&way["sum_of_means_us"], &way["means_differ_percent"]),
        (&30.5.into(), &0.0.into())
    );
}

#[test]
fn pages_contain_charts_and_origin() {
    for view in reports(&merged()) {
        let html = view.html();
        assert!(html.contains("client&#x27;s &lt;host&gt;"), "names are escaped");
        let charts = view.svg_files();
        assert!(!charts.is_empty());
        for (name, svg) in charts {
            assert!(name.ends_with(".svg") && svg.starts_with("<svg "), "{name}");
        }
        assert_eq!(html.matches("<svg class=\"chart\"").count(), view.svg_files().len());
    }
}

#[test]
fn empty_traces_have_reports() {
    let empty = trace("idle", 0, ["10.0.0.1:1", "10.0.0.2:2"], &[]);
    let merged = MergedTraces::of(vec![empty]).unwrap();
    for view in reports(&merged) {
        assert!(!view.to_string().is_empty() && !view.html().is_empty());
    }
    let timeline = super::timeline(&merged, &RpcFilter::default()).to_string();
    assert!(timeline.contains("only some RPCs are traced: trace all"), "{timeline}");
}
