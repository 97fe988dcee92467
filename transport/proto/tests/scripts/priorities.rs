//! Priority levels of packets. Source: docs/reference/homa-module.md, *Sending DATA*, *CUTOFFS*,
//! *Priorities on the wire* and *Unscheduled bytes and cutoffs*.

use crate::script::run;
use insta::assert_snapshot;

/// PRIO-3, PRIO-7, HM `homa_peer.c` `homa_peer_alloc`, `homa_outgoing.c` `homa_xmit_data`,
/// `homa_incoming.c` `homa_cutoffs_pkt`: level 6 until the peer has announced its cutoffs, then by
/// message length.
#[test]
fn unscheduled_levels() {
    assert_snapshot!(run("
        meet Q
        call Q 100
        call P 100
        P: NEED_ACK c2 +CONFIRM
        P: CUTOFFS c1 5
        call P 200
        call P 201
        call P 2801
        call P 20000
    "), @"
    > call Q 100
      -> Q DATA c1 0..100/100 cutoffs=1 prio=7
    > call P 100
      -> P DATA c2 0..100/100 new prio=6
    > P: NEED_ACK c2 +CONFIRM
      -> P DATA c2 0..100/100 +CONFIRM prio=6
    > P: CUTOFFS c1 5
    > call P 200
      -> P DATA c3 0..200/200 cutoffs=5 +CONFIRM prio=7
    > call P 201
      -> P DATA c4 0..201/201 cutoffs=5 +CONFIRM prio=6
    > call P 2801
      -> P DATA c5 0..2801/2801 packets=3 cutoffs=5 +CONFIRM prio=5
    > call P 20000
      -> P DATA c6 0..10000/20000 incoming=10000 packets=8 cutoffs=5 +CONFIRM prio=4
    ");
}

/// PRIO-14, an attack: CUTOFFS without the session, with a guessed session, and as a client without
/// a session. Until November 2026 one such packet put all messages to a peer on one level, and the
/// true announcement, of the same version, was never sent again.
#[test]
fn forged_cutoffs_change_nothing() {
    assert_snapshot!(run("
        meet P
        call P 100
        P: CUTOFFS c1 9 room=1
        call P 100
        P: CUTOFFS c1 1 inc=5
        P: CUTOFFS c1 1 session=5
        P: CUTOFFS s1 1 session=5
        P: CUTOFFS s1 1 inc=80
        Q: CUTOFFS c1 1
        call P 100
        P: CUTOFFS s1 7
        call P 100
    "), @"
    > call P 100
      -> P DATA c1 0..100/100 cutoffs=1 prio=7
    > P: CUTOFFS c1 9 room=1
    > call P 100
      -> P DATA c2 0..100/100 cutoffs=9 prio=7 shares=1452
    > P: CUTOFFS c1 1 inc=5
      xx stale_sessions
    > P: CUTOFFS c1 1 session=5
      xx stale_sessions
    > P: CUTOFFS s1 1 session=5
      xx stale_sessions
    > P: CUTOFFS s1 1 inc=80
      xx stale_sessions
    > Q: CUTOFFS c1 1
      xx unknown_rpcs
    > call P 100
      -> P DATA c3 0..100/100 cutoffs=9 prio=7 shares=1452
    > P: CUTOFFS s1 7
    > call P 100
      -> P DATA c4 0..100/100 cutoffs=7 prio=7
    ");
}

/// PRIO-6, HM `homa_incoming.c` `homa_data_pkt`: a packet that repeats an old version is answered
/// with our cutoffs, once per millisecond.
#[test]
fn cutoffs_are_announced() {
    assert_snapshot!(run("
        meet P
        +2ms
        P: DATA s1 0..10/10 cutoffs=0
        P: DATA s2 0..10/10 cutoffs=9
        +2ms
        P: DATA s3 0..10/10 cutoffs=9
        P: DATA s4 0..10/10 cutoffs=1
    "), @"
    > +2ms
    > P: DATA s1 0..10/10 cutoffs=0
      !! request s1 from P: 10 B
      -> P CUTOFFS s1 v1 [0, 0, 0, 0, 4294967295, 15000, 2800, 200] prio=7
    > P: DATA s2 0..10/10 cutoffs=9
      !! request s2 from P: 10 B
    > +2ms
    > P: DATA s3 0..10/10 cutoffs=9
      !! request s3 from P: 10 B
      -> P CUTOFFS s3 v1 [0, 0, 0, 0, 4294967295, 15000, 2800, 200] prio=7
    > P: DATA s4 0..10/10 cutoffs=1
      !! request s4 from P: 10 B
    ");
}

/// PRIO-4, HM `homa_outgoing.c` `homa_xmit_data`: bytes above the unscheduled limit travel at the
/// level of the newest GRANT.
#[test]
fn scheduled_levels() {
    assert_snapshot!(run("
        config unsched_bytes=2000 unsched_bytes_min=2000 unsched_bytes_max=2000
        meet P
        call P 20000
        P: GRANT c1 4000 level=3
        P: GRANT c1 6000 level=1
    "), @"
    > call P 20000
      -> P DATA c1 0..2000/20000 incoming=2000 packets=2 cutoffs=1 prio=4
    > P: GRANT c1 4000 level=3
      -> P DATA c1 2000..4792/20000 incoming=2000 packets=2 cutoffs=1 prio=3
    > P: GRANT c1 6000 level=1
      -> P DATA c1 4792..6188/20000 incoming=2000 cutoffs=1 prio=1
    ");
}

/// PRIO-5, PRIO-11: four levels: the highest is 3, for control packets as well.
#[test]
fn fewer_levels() {
    assert_snapshot!(run("
        config num_priorities=4
        call P 100
        P: NEED_ACK c1 +CONFIRM
        P: DATA c1 0..10/10 cutoffs=0
    "), @"
    > call P 100
      -> P DATA c1 0..100/100 new prio=2
    > P: NEED_ACK c1 +CONFIRM
      -> P DATA c1 0..100/100 +CONFIRM prio=2
    > P: DATA c1 0..10/10 cutoffs=0
      !! response c1: 10 B
      -> P CUTOFFS c1 v1 [4294967295, 15000, 2800, 200, 0, 0, 0, 0] prio=3
    ");
}

/// PRIO-16: messages longer than the peer's announced limit start with 128 bytes, and wait for
/// GRANTs.
#[test]
fn long_messages_to_a_peer_with_one_level_begin_scheduled() {
    assert_snapshot!(run("
        meet P
        P: CUTOFFS c1 5 longest=1500
        call P 1500
        call P 1501
        P: GRANT c2 1501 level=0
        P: CUTOFFS c1 6
        call P 1501
    "), @"
    > P: CUTOFFS c1 5 longest=1500
    > call P 1500
      -> P DATA c1 0..1500/1500 packets=2 cutoffs=5 prio=6
    > call P 1501
      -> P DATA c2 0..128/1501 incoming=128 cutoffs=5 prio=6
    > P: GRANT c2 1501 level=0
      -> P DATA c2 128..1501/1501 incoming=128 cutoffs=5 prio=0
    > P: CUTOFFS c1 6
    > call P 1501
      -> P DATA c3 0..1501/1501 packets=2 cutoffs=6 prio=6
    ");
}

/// PRIO-16, PRIO-7: in the kernel profile level 0 takes messages of any length, whatever a host
/// announces.
#[test]
fn a_kernels_lowest_cutoff_makes_no_message_wait() {
    let output = run("
        config profile=kernel
        call P 5000
        P: CUTOFFS c1 5 longest=1500
        call P 5000
    ");
    assert!(output.contains("0..5000/5000") && !output.contains("0..128"), "{output}");
}

/// PRIO-16: a receiver with one level announces the length up to which messages may start
/// unscheduled, if senders report their backlog and it learns.
#[test]
fn a_receiver_with_one_level_says_what_may_begin_unscheduled() {
    let announced = |config: &str| {
        let output = run(&format!("config {config}\nmeet P\n+2ms\nP: DATA s1 0..10/10 cutoffs=0"));
        output.lines().find(|line| line.contains("CUTOFFS")).unwrap().to_owned()
    };
    let said = announced("num_priorities=1 informed_incoming=18000");
    assert!(said.contains("v1 [1500, 0, 0, 0, 0, 0, 0, 0]"), "{said}");
    let any = "v1 [4294967295, ";
    for config in [
        "num_priorities=1",
        "num_priorities=2 informed_incoming=18000",
        "num_priorities=1 informed_incoming=18000 cutoffs_interval_usecs=0",
    ] {
        let said = announced(config);
        assert!(said.contains(any), "{config}: {said}");
    }
}

/// PRIO-15, WIRE-35: a request states how many bytes of its response may leave without a GRANT. One
/// leaves in any case, and the usual ones at most.
#[test]
fn a_client_limits_what_a_response_begins_with() {
    let begins = |limit: &str| {
        let output = run(&format!(
            "meet P
            P: DATA s1 0..10/10 {limit}
            reply s1 50000
            "
        ));
        let first = output.lines().find(|line| line.contains("DATA s1") && line.contains("->"));
        first.and_then(|line| line.split_whitespace().nth(4)).map(str::to_owned)
    };
    let usual = begins("").unwrap();
    assert_eq!(begins("limit=128").as_deref(), Some("0..128/50000"));
    assert_eq!(begins("limit=0").as_deref(), Some("0..1/50000"));
    assert_eq!(begins("limit=1000000"), Some(usual));
}
