//! Notes on selected RPCs.

use crate::pair::Pair;
use apus_proto::probe::{Piece, ProbeFilter, ProbeKind};
use apus_proto::{Call, Config, Exemplars, Kind, Role};
use std::time::Duration;

#[test]
fn the_way_of_a_short_call_is_noted_on_both_sides() {
    let mut pair = Pair::new(Some(ProbeFilter::ALL));
    pair.introduce();
    pair.call(100);
    pair.settle();
    let way = ["data_sent 0+100", "data_received 0+100", "complete 100"];
    assert_eq!(pair.client.texts(), way);
    assert_eq!(pair.server.texts(), [way[1], way[2], way[0]]);
    let [id, role] = [&pair.client, &pair.server].map(|end| end.notes[0].rpc.unwrap());
    assert_eq!(id.client_id(), role.client_id(), "both know it by the same id");
    assert_eq!([id.sender(), role.sender()], [Role::Client, Role::Server]);
    assert!(pair.client.notes.iter().all(|note| note.peer == pair.server.address));
    assert!(pair.server.notes.iter().all(|note| note.peer == pair.client.address));
}

#[test]
fn an_unknown_client_is_asked_and_the_packets_are_noted() {
    let mut pair = Pair::new(Some(ProbeFilter::ALL));
    pair.call(100);
    pair.settle();
    let server = ["data_received 0+100", "sent NEED_ACK", "data_received 0+100", "complete 100"];
    assert_eq!(pair.server.texts()[..4], server);
    let client = ["data_sent 0+100", "received NEED_ACK", "data_sent 0+100", "data_received 0+100"];
    assert_eq!(pair.client.texts()[..4], client);
}

#[test]
fn a_long_call_notes_its_grants_when_they_are_made_heard_and_used() {
    let mut pair = Pair::new(Some(ProbeFilter::ALL));
    pair.introduce();
    pair.call(300_000);
    pair.settle();
    assert_eq!(pair.client.ends, [true]);
    let offsets = |notes: &[apus_proto::probe::ProbeEvent], pick: fn(&ProbeKind) -> Option<u32>| {
        notes.iter().filter_map(|note| pick(&note.what)).collect::<Vec<_>>()
    };
    let sent = |what: &ProbeKind| match what {
        ProbeKind::GrantSent { offset, .. } => Some(*offset),
        _ => None,
    };
    let received = |what: &ProbeKind| match what {
        ProbeKind::GrantReceived { offset, .. } => Some(*offset),
        _ => None,
    };
    let used = |what: &ProbeKind| match what {
        ProbeKind::GrantUsed { offset, .. } => Some(*offset),
        _ => None,
    };
    let granted = offsets(&pair.server.notes, sent);
    assert!(!granted.is_empty() && granted.is_sorted());
    assert_eq!(granted.last(), Some(&300_000));
    assert_eq!(offsets(&pair.client.notes, received), granted);
    assert_eq!(offsets(&pair.client.notes, used).last(), Some(&300_000));

    let first = |kind: &str| pair.client.kinds().iter().position(|other| other == kind).unwrap();
    assert!(first("data_sent") < first("grant_received"));
    assert!(first("grant_received") < first("grant_used"));

    // Every byte leaves once, and no note contradicts that.
    let pieces = pair.client.notes.iter().filter_map(|note| match note.what {
        ProbeKind::DataSent(piece) => Some(piece),
        _ => None,
    });
    let mut next = 0;
    for Piece { offset, length, packets, retransmit, .. } in pieces {
        assert_eq!((offset, retransmit), (next, false));
        assert_eq!(packets, length.div_ceil(1_396));
        next += length;
    }
    assert_eq!(next, 300_000);
}

#[test]
fn what_is_not_selected_is_not_noted() {
    let mut all = Pair::new(Some(ProbeFilter::ALL));
    for _ in 0..64 {
        all.call(10);
    }
    all.settle();
    let mut ids: Vec<u64> =
        all.client.notes.iter().map(|note| note.rpc.unwrap().client_id()).collect();
    ids.dedup();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 64);

    let watch =
        ProbeFilter { multiplier: 0x9e37_79b9_7f4a_7c15, below: u64::MAX / 8, slow: Duration::MAX };
    let mut some = Pair::new(Some(watch));
    for _ in 0..64 {
        some.call(10);
    }
    some.settle();
    for end in [&some.client, &some.server] {
        assert!(!end.notes.is_empty());
        assert!(end.notes.iter().all(|note| watch.selects(note.rpc.unwrap().client_id())));
    }
    let selected = ids.iter().filter(|id| watch.selects(**id)).count();
    let noted = |end: &crate::pair::End| {
        end.notes.iter().filter(|note| matches!(note.what, ProbeKind::Complete { .. })).count()
    };
    assert_eq!([noted(&some.client), noted(&some.server)], [selected; 2]);

    let mut rare = Pair::new(Some(ProbeFilter::RARE));
    rare.call(300_000);
    rare.settle();
    assert_eq!((rare.client.texts(), rare.server.texts()), (vec![], vec![]));
}

#[test]
fn another_filter_selects_among_calls_that_are_under_way() {
    let ends = [None, Some(ProbeFilter::RARE), Some(ProbeFilter::ALL)].map(|later| {
        let mut pair = Pair::new(Some(ProbeFilter::ALL));
        pair.introduce();
        pair.call(100);
        pair.client.notes.clear();
        pair.client.transport.set_probe_filter(later);
        pair.settle();
        pair.client.texts()
    });
    let way = ["data_sent 0+100", "data_received 0+100", "complete 100"];
    assert_eq!(ends, [vec![], vec![], way.map(String::from).to_vec()]);

    let mut pair = Pair::new(None);
    pair.introduce();
    pair.call(100);
    pair.client.transport.set_probe_filter(Some(ProbeFilter::ALL));
    pair.settle();
    assert_eq!(pair.client.texts(), way, "selected later");
}

#[test]
fn a_caller_learns_at_once_whether_its_call_is_selected() {
    let filters = [None, Some(ProbeFilter::RARE), Some(ProbeFilter::ALL)];
    let selected = filters.map(|filter| {
        let mut pair = Pair::new(filter);
        let mut count = 0;
        for length in [100, 100_000_000, 200] {
            let (to, payload) = (pair.server.address, vec![7; length].into());
            let call = Call { to, payload, cookie: 1, deadline: None, idempotent: true };
            let called = pair.client.transport.call_observed(pair.now, call, &mut || count += 1);
            assert_eq!(called.is_err(), length == 100_000_000, "too long");
            if let Ok(rpc) = called {
                assert_eq!(pair.client.transport.selected(rpc).is_some(), filter == filters[2]);
            }
        }
        count
    });
    assert_eq!(selected, [0, 0, 2]);
}

#[test]
fn notes_change_nothing() {
    let run = |watch| {
        let mut pair = Pair::new(watch);
        pair.call(200_000);
        pair.lose([3, 5, 40, 41, 90]);
        pair.run(30);
        pair.call(100);
        pair.run(5);
        assert_eq!(pair.client.ends, [true, true]);
        let metrics = [&pair.client, &pair.server].map(|end| {
            // Exemplars are of selected RPCs, like notes.
            let mut metrics = end.transport.metrics();
            metrics.calls.answered_exemplars = Exemplars::default();
            metrics.calls.served_exemplars = Exemplars::default();
            metrics
        });
        (pair.wire, metrics, pair.client.notes.len())
    };
    let [none, all, rare] = [None, Some(ProbeFilter::ALL), Some(ProbeFilter::RARE)].map(run);
    assert!(none.0 == all.0 && none.0 == rare.0, "other packets");
    assert!(none.1 == all.1 && none.1 == rare.1, "other counters");
    assert!(none.2 == 0 && 0 < rare.2 && rare.2 < all.2);
}

#[test]
fn the_other_profile_is_noted_as_well() {
    let config = Config::builder().profile(apus_proto::Profile::Kernel).build().unwrap();
    let mut pair = Pair::with(config, Some(ProbeFilter::ALL));
    pair.introduce();
    pair.call(100);
    pair.settle();
    assert_eq!(pair.client.texts(), ["data_sent 0+100", "data_received 0+100", "complete 100"]);
    assert_eq!(pair.client.transport.freeze_peers(pair.now), 0, "its peers have no ports");
}

#[test]
fn control_packets_of_a_call_are_noted_by_their_kind() {
    let mut pair = Pair::new(Some(ProbeFilter::ALL));
    pair.introduce();
    pair.call(10);
    pair.settle();
    // The client acknowledges the response without DATA (RPC-18).
    pair.run(400);
    let has = |end: &crate::pair::End, wanted: ProbeKind| {
        end.notes
            .iter()
            .any(|note| format!("{:?}", note.what).starts_with(&format!("{wanted:?}")[..20]))
    };
    let flags = apus_proto::Flags::NONE;
    let texts = pair.client.texts();
    assert!(has(&pair.client, ProbeKind::Sent { kind: Kind::Ack, flags }), "{texts:?}");
    assert!(has(&pair.server, ProbeKind::Received { kind: Kind::Ack, flags }));
    assert!(!has(&pair.client, ProbeKind::Received { kind: Kind::NeedAck, flags }));
}
