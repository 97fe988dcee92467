//! Exemplars of durations: the RPCs stored, and their buckets.

use crate::pair::{End, MILLISECOND, Pair};
use apus_proto::probe::ProbeFilter;
use apus_proto::{COARSE_BOUNDS, Exemplar, Exemplars};
use std::time::Duration;

fn answered(end: &End) -> Exemplars {
    end.transport.metrics().calls.answered_exemplars
}

fn served(end: &End) -> Exemplars {
    end.transport.metrics().calls.served_exemplars
}

fn ids<'a>(exemplars: impl IntoIterator<Item = &'a Exemplar>) -> Vec<u64> {
    exemplars.into_iter().map(|exemplar| exemplar.id).collect()
}

/// The id of the RPC in the last note.
fn last_id(end: &End) -> u64 {
    end.notes.last().unwrap().rpc.unwrap().client_id()
}

#[test]
fn a_bucket_has_the_latest_selected_rpc_with_its_peer_and_duration() {
    let mut pair = Pair::new(Some(ProbeFilter::ALL));
    pair.introduce();
    pair.call(10);
    pair.settle();
    let short = last_id(&pair.client);
    let [mine, theirs] = [answered(&pair.client), served(&pair.server)];
    assert_eq!((ids(mine.iter()), ids(theirs.iter())), (vec![short], vec![short]));
    let exemplar = mine.iter().next().unwrap();
    assert_eq!(exemplar.peer, pair.server.address);
    assert!(exemplar.nanos > 0 && exemplar.nanos <= COARSE_BOUNDS[0], "{exemplar:?}");
    assert!(exemplar.at <= pair.now && exemplar.at + Duration::from_micros(9) > pair.now);
    assert_eq!(theirs.iter().next().unwrap().peer, pair.client.address);
    assert_eq!(ids(served(&pair.client).iter()), [], "it has served no request");
    assert_eq!(ids(answered(&pair.server).iter()), [], "it has made no call");

    // The request is lost, and sent again after the resend interval.
    pair.call(10);
    pair.lose([0]);
    pair.run(100);
    let mine = answered(&pair.client);
    let [first, second] = ids(mine.iter())[..] else { panic!("{mine:?}") };
    assert_eq!(first, short, "another bucket");
    assert_ne!(second, short);
    let long = mine.iter().last().unwrap();
    assert!(long.nanos > 5 * MILLISECOND, "{long:?}");
    let filled = |bound: &u64| long.nanos <= *bound;
    let bucket = COARSE_BOUNDS.iter().position(filled).unwrap();
    assert_eq!(pair.client.transport.metrics().calls.answered.coarse().counts()[bucket], 1);
}

#[test]
fn rpcs_that_are_not_selected_are_not_remembered() {
    for filter in [None, Some(ProbeFilter::RARE)] {
        let mut pair = Pair::new(filter);
        pair.introduce();
        assert_eq!(pair.client.transport.metrics().calls.answered.coarse().count(), 2);
        assert_eq!(answered(&pair.client), Exemplars::default());
        assert_eq!(served(&pair.server), Exemplars::default());
    }
    let some =
        ProbeFilter { multiplier: 0x9e37_79b9_7f4a_7c15, below: u64::MAX / 8, ..ProbeFilter::RARE };
    let mut pair = Pair::new(Some(some));
    for _ in 0..64 {
        pair.call(10);
        pair.settle();
    }
    for exemplars in [answered(&pair.client), served(&pair.server)] {
        let ids = ids(exemplars.iter());
        assert!(!ids.is_empty() && ids.iter().all(|id| some.selects(*id)), "{ids:?}");
    }
}
