//! RESEND and BUSY. Source: docs/reference/homa-module.md, *Packets* and *Timers*.

use crate::script::{converse, run};
use insta::assert_snapshot;
use std::collections::BTreeSet;

/// TIME-3, HM `homa_timer.c` `homa_timer_check_rpc`: after 5 ms of silence the response is
/// requested, and again every 5 ms.
#[test]
fn a_silent_server_is_asked() {
    assert_snapshot!(run("
        meet P
        call P 10
        +4ms
        +20ms
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > +4ms
    > +20ms
      @1.00ms -> P RESEND c1 everything prio=7
      @6.00ms -> P RESEND c1 everything prio=7
      @11.00ms -> P RESEND c1 everything prio=7
    ");
}

/// TIME-5, HM `homa_incoming.c` `homa_request_retrans`: one RESEND per gap and one for the tail up
/// to the granted limit.
#[test]
fn each_gap_is_asked_for() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 1000..2000/9000 unsched=5000
        P: DATA s1 3000..4000/9000 unsched=5000
        +8ms
    "), @"
    > P: DATA s1 1000..2000/9000 unsched=5000
      -> P GRANT s1 9000 level=0 prio=7
    > P: DATA s1 3000..4000/9000 unsched=5000
    > +8ms
      @5.00ms -> P RESEND s1 0..1000 prio=7
      @5.00ms -> P RESEND s1 2000..3000 prio=7
      @5.00ms -> P RESEND s1 4000..9000 prio=7
    ");
}

/// HM `homa_incoming.c` `homa_request_retrans`: no packet of the response has arrived: everything
/// is requested.
#[test]
fn nothing_has_come() {
    assert_snapshot!(run("
        meet P
        call P 10
        +8ms
        P: DATA c1 0..1000/3000 retransmit
        +8ms
        P: DATA c1 1000..3000/3000 retransmit
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > +8ms
      @5.00ms -> P RESEND c1 everything prio=7
    > P: DATA c1 0..1000/3000 retransmit
    > +8ms
      @7.00ms -> P RESEND c1 1000..3000 prio=7
    > P: DATA c1 1000..3000/3000 retransmit
      !! response c1: 3000 B
    ");
}

/// HM `homa_incoming.c` `homa_resend_pkt`: an unknown RPC.
#[test]
fn a_resend_for_an_unknown_rpc() {
    assert_snapshot!(run("
        meet P
        P: RESEND s5 everything
        P: RESEND c9 0..100
        Q: RESEND s5 everything
    "), @"
    > P: RESEND s5 everything
      xx unknown_rpcs
      -> P RPC_UNKNOWN s5 prio=7
    > P: RESEND c9 0..100
      xx unknown_rpcs
      -> P RPC_UNKNOWN c?9 prio=7
    > Q: RESEND s5 everything
      xx unknown_rpcs
      -> Q RPC_UNKNOWN s5 prio=7
    ");
}

/// TIME-7, HM `homa_incoming.c` `homa_resend_pkt`: no response yet: BUSY.
#[test]
fn a_resend_before_the_reply() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/20
        P: RESEND s1 everything
        P: DATA s1 10..20/20
        P: RESEND s1 everything
    "), @"
    > P: DATA s1 0..10/20
    > P: RESEND s1 everything
      -> P BUSY s1 prio=7
    > P: DATA s1 10..20/20
      !! request s1 from P: 20 B
    > P: RESEND s1 everything
      -> P BUSY s1 prio=7
    ");
}

/// SEND-7, TIME-7, HM `homa_outgoing.c` `homa_resend_data`, `homa_incoming.c` `homa_resend_pkt`:
/// whole packets of the first transmission, marked, with the range's end in `incoming`.
#[test]
fn bytes_are_sent_again() {
    assert_snapshot!(run("
        meet P
        call P 5000
        +1ms
        P: RESEND c1 1000..1500
        +1ms
        P: RESEND c1 4999..5000
        +1ms
        P: RESEND c1 everything
    "), @"
    > call P 5000
      -> P DATA c1 0..5000/5000 packets=4 cutoffs=1 prio=5
    > +1ms
    > P: RESEND c1 1000..1500
      -> P DATA c1 0..2792/5000 packets=2 cutoffs=1 retransmit prio=6
    > +1ms
    > P: RESEND c1 4999..5000
      -> P DATA c1 4188..5000/5000 cutoffs=1 retransmit prio=7
    > +1ms
    > P: RESEND c1 everything
      -> P DATA c1 0..5000/5000 packets=4 cutoffs=1 retransmit prio=5
    ");
}

/// TIME-17: bytes that were sent again twice and do not arrive are sent packet by packet, and twice
/// as many as have arrived once some do. (They are as short as packets can be, SEND-16.)
#[test]
fn bytes_that_do_not_arrive_are_sent_packet_by_packet() {
    assert_snapshot!(run("
        meet P
        limit P 1216
        call P 9000
        +1ms
        P: RESEND c1 everything
        +1ms
        P: RESEND c1 everything
        +1ms
        P: RESEND c1 everything
        P: RESEND c1 everything
        +1ms
        P: RPC_UNKNOWN c1
        +1ms
        P: RESEND c1 1160..9000
        +1ms
        P: RESEND c1 3480..9000
    "), @"
    > limit P 1216
    > call P 9000
      -> P DATA c1 0..9000/9000 packets=8 cutoffs=1 prio=5
    > +1ms
    > P: RESEND c1 everything
      -> P DATA c1 0..9000/9000 packets=8 cutoffs=1 retransmit prio=5
    > +1ms
    > P: RESEND c1 everything
      -> P DATA c1 0..9000/9000 packets=8 cutoffs=1 retransmit prio=5
    > +1ms
    > P: RESEND c1 everything
      -> P DATA c1 0..1160/9000 cutoffs=1 retransmit prio=5
    > P: RESEND c1 everything
      -> P BUSY c1 prio=7
    > +1ms
    > P: RPC_UNKNOWN c1
      -> P DATA c1 0..1160/9000 cutoffs=1 retransmit prio=5
    > +1ms
    > P: RESEND c1 1160..9000
      -> P DATA c1 1160..3480/9000 packets=2 cutoffs=1 retransmit prio=5
    > +1ms
    > P: RESEND c1 3480..9000
      -> P DATA c1 3480..8120/9000 packets=4 cutoffs=1 retransmit prio=5
    ");
}

/// TIME-7, HM `homa_incoming.c` `homa_resend_pkt`: a range that was never granted means that the
/// GRANT was lost.
#[test]
fn a_lost_grant_is_assumed() {
    assert_snapshot!(run("
        config unsched_bytes=2000 unsched_bytes_min=2000 unsched_bytes_max=2000
        meet P
        call P 10000
        +1ms
        P: RESEND c1 0..4000
        P: RESEND c1 6000..7000
    "), @"
    > call P 10000
      -> P DATA c1 0..2000/10000 incoming=2000 packets=2 cutoffs=1 prio=5
    > +1ms
    > P: RESEND c1 0..4000
      -> P DATA c1 2000..4792/10000 incoming=2000 packets=2 cutoffs=1 prio=0
      -> P DATA c1 0..2000/10000 incoming=2000 packets=2 cutoffs=1 retransmit prio=5
    > P: RESEND c1 6000..7000
      -> P BUSY c1 prio=7
      -> P DATA c1 4792..7584/10000 incoming=2000 packets=2 cutoffs=1 prio=0
    ");
}

/// BAD-7, HM `homa_incoming.c` `homa_resend_pkt`: a range outside of the message, and an empty one
/// (docs/reference/homa-module.md, *Known holes*).
#[test]
fn ranges_that_make_no_sense() {
    assert_snapshot!(run("
        meet P
        call P 1000
        P: RESEND c1 5000..9000
        +1ms
        P: RESEND c1 500..4294967294
        P: RESEND c1 500..500
    "), @"
    > call P 1000
      -> P DATA c1 0..1000/1000 cutoffs=1 prio=6
    > P: RESEND c1 5000..9000
      -> P BUSY c1 prio=7
    > +1ms
    > P: RESEND c1 500..4294967294
      -> P DATA c1 0..1000/1000 cutoffs=1 retransmit prio=6
    > P: RESEND c1 500..500
      -> P BUSY c1 prio=7
    ");
}

/// TIME-1, HM `homa_incoming.c` `homa_dispatch_pkts`: BUSY means that the peer is alive.
#[test]
fn busy_resets_the_silence() {
    assert_snapshot!(run("
        meet P
        call P 10
        +4ms
        P: BUSY c1
        +4ms
        +4ms
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > +4ms
    > P: BUSY c1
    > +4ms
    > +4ms
    ");
}

/// TIME-2, HM `homa_timer.c` `homa_timer_check_rpc`: granted bytes that have not left are our own
/// fault, not silence.
#[test]
fn bytes_that_have_not_left_are_not_silence() {
    assert_snapshot!(run("
        config link_mbps=10 max_nic_est_backlog_usecs=100
        meet P
        call P 30000
        +600ms
    "), @"
    > call P 30000
    > +600ms
      @0.25ms -> P DATA c1 0..1396/30000 incoming=10000 cutoffs=1 prio=4
      @1.47ms -> P DATA c1 1396..2792/30000 incoming=10000 cutoffs=1 prio=4
      @2.70ms -> P DATA c1 2792..4188/30000 incoming=10000 cutoffs=1 prio=4
      @3.93ms -> P DATA c1 4188..5584/30000 incoming=10000 cutoffs=1 prio=4
      @5.15ms -> P DATA c1 5584..6980/30000 incoming=10000 cutoffs=1 prio=4
      @6.38ms -> P DATA c1 6980..8376/30000 incoming=10000 cutoffs=1 prio=4
      @7.61ms -> P DATA c1 8376..9772/30000 incoming=10000 cutoffs=1 prio=4
      @8.83ms -> P DATA c1 9772..10000/30000 incoming=10000 cutoffs=1 prio=4
      @250.00ms -> P RESEND c1 everything prio=7
      @500.00ms -> P RESEND c1 everything prio=7
    ");
}

/// TIME-3, chosen by us: on a slow link a packet may wait for the 960,000 bytes before it, and is
/// not requested in that time: 77 ms at 100 Mbit/s.
#[test]
fn waiting_in_a_queue_is_not_silence() {
    assert_snapshot!(run("
        config link_mbps=100
        meet P
        call P 10
        +200ms
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > +200ms
      @76.80ms -> P RESEND c1 everything prio=7
      @153.60ms -> P RESEND c1 everything prio=7
    ");
}

/// TIME-2, HM `homa_timer.c` `homa_timer_check_rpc`: all granted bytes are here; it is our turn to
/// grant. GRANT-10: a BUSY keeps no grants.
#[test]
fn waiting_for_our_own_grants_is_not_silence() {
    assert_snapshot!(run("
        config max_overcommit=1 max_incoming=3000 grant_increment=1000 grant_fifo_fraction=0
        meet P
        meet Q
        P: DATA s1 0..1000/5000 unsched=1000
        Q: DATA s1 0..1000/9000 unsched=1000
        +4ms
        P: BUSY s1
        +4ms
    "), @"
    > P: DATA s1 0..1000/5000 unsched=1000
      -> P GRANT s1 2500 level=0 prio=7
    > Q: DATA s1 0..1000/9000 unsched=1000
    > +4ms
    > P: BUSY s1
    > +4ms
      @1.00ms -> Q GRANT s1 2500 level=0 prio=7
    ");
}

/// TIME-6, described in HM `protocol.md` and enforced by no code: one burst of RESENDs per peer at
/// a time.
#[test]
fn one_burst_of_resends_per_peer() {
    assert_snapshot!(run("
        meet P
        call P 10
        call P 10
        +8ms
        +4.9ms
        P: BUSY c1
        +5ms
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > call P 10
      -> P DATA c2 0..10/10 cutoffs=1 prio=7
    > +8ms
      @5.00ms -> P RESEND c1 everything prio=7
      @5.00ms -> P RESEND c2 everything prio=7
    > +4.9ms
      @2.00ms -> P RESEND c1 everything prio=7
      @2.00ms -> P RESEND c2 everything prio=7
    > P: BUSY c1
    > +5ms
      @2.10ms -> P RESEND c2 everything prio=7
    ");
}

/// TIME-4: many calls to a server that has ended rarely have a turn to ask (TIME-6), and end with
/// the timeout all the same. A sign of life in between restarts it. (With 1,500 calls they ended
/// after 7 s instead of 0.4 s: seed 559.)
#[test]
fn many_calls_to_a_silent_server_end_with_the_timeout() {
    let calls = "call P 10\n".repeat(400);
    let script = format!("config timeout_usecs=100000\nmeet P\n{calls}+90ms\nlive\n");
    let ended = |rest: &str| {
        let transcript = run(&(script.clone() + rest));
        let parts = transcript.split("> live").map(|part| part.matches("!! failed").count());
        parts.collect::<Vec<_>>()
    };
    assert_eq!(ended("+60ms"), [0, 400]);
    assert_eq!(ended("P: BUSY c400\n+60ms\nlive\n+100ms"), [0, 0, 400]);
}

/// TIME-4: each of them would have a GRANT in turn, and wait for the timeout. A client that answers
/// for one of them is alive.
#[test]
fn requests_that_wait_for_grants_of_a_client_that_has_gone_end_with_the_timeout() {
    let requests: String =
        (1..=40).map(|id| format!("P: DATA s{id} 0..100/9000 unsched=100\n")).collect();
    let limits = "max_overcommit=1 max_incoming=3000 grant_increment=1000 grant_fifo_fraction=0";
    let script = format!("config timeout_usecs=100000 {limits}\n{requests}live\n");
    let servers = |rest: &str| {
        let transcript = run(&(script.clone() + rest));
        let last = transcript.lines().last().unwrap().to_owned();
        last.split_whitespace().find_map(|word| word.strip_prefix("servers=")?.parse::<u32>().ok())
    };
    assert_eq!(servers("+200ms\nlive"), Some(0));
    let answered = servers("+60ms\nP: BUSY s2\n+60ms\nP: BUSY s2\n+80ms\nlive");
    assert_eq!(answered, Some(19), "only those that were asked about have ended");
}

/// TIME-3, TIME-11, HM `perf.txt`: the floor is milliseconds; a peer with a long round-trip time
/// has a longer RTO. The time until it offers a session is what is measured.
#[test]
fn the_rto_grows_with_the_round_trip_time() {
    assert_snapshot!(run("
        config resend_interval_usecs=100000
        call P 10
        +20ms
        P: NEED_ACK c1 +CONFIRM
        call P 10
        +40ms
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 new prio=6
    > +20ms
      @5.00ms -> P RESEND c1 everything new prio=7
    > P: NEED_ACK c1 +CONFIRM
      -> P DATA c1 0..10/10 +CONFIRM prio=6
    > call P 10
      -> P DATA c2 0..10/10 +CONFIRM prio=6
    > +40ms
      @5.00ms -> P RESEND c1 everything prio=7
      @5.00ms -> P RESEND c2 everything prio=7
    ");
}

/// TIME-11: a first GRANT that is late has waited for shorter messages. (It used to count, so that
/// losses were requested later and later while many messages waited, which made GRANTs even later.)
#[test]
fn the_rto_does_not_grow_with_the_wait_for_a_grant() {
    assert_snapshot!(run("
        config unsched_bytes=2000 unsched_bytes_min=2000 unsched_bytes_max=2000 resend_interval_usecs=1000000
        meet P
        call P 20000
        +100us
        P: GRANT c1 20000 level=0
        call P 20000
        +900ms
        P: GRANT c2 20000 level=0
        call P 10
        +9ms
    "), @"
    > call P 20000
      -> P DATA c1 0..2000/20000 incoming=2000 packets=2 cutoffs=1 prio=4
    > +100us
    > P: GRANT c1 20000 level=0
      -> P DATA c1 2000..20000/20000 incoming=2000 packets=13 cutoffs=1 prio=0
    > call P 20000
      -> P DATA c2 0..2000/20000 incoming=2000 packets=2 cutoffs=1 prio=4
    > +900ms
      @5.21ms -> P RESEND c2 everything prio=7
    > P: GRANT c2 20000 level=0
      -> P DATA c2 2000..20000/20000 incoming=2000 packets=13 cutoffs=1 prio=0
    > call P 10
      -> P DATA c3 0..10/10 cutoffs=1 prio=7
    > +9ms
      @2.40ms -> P RESEND c1 everything prio=7
    ");
}

/// A retransmission does not wait for grants, but it is bounded and at the requested level.
#[test]
fn the_response_is_sent_again() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        reply s1 3000
        +1ms
        P: RESEND s1 0..1396
        +1ms
        P: RESEND s1 everything
        P: ACK s1
        P: RESEND s1 everything
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 3000
      -> P DATA s1 0..3000/3000 packets=3 cutoffs=1 prio=5
    > +1ms
    > P: RESEND s1 0..1396
      -> P DATA s1 0..1396/3000 cutoffs=1 retransmit prio=6
    > +1ms
    > P: RESEND s1 everything
      -> P DATA s1 0..3000/3000 packets=3 cutoffs=1 retransmit prio=5
    > P: ACK s1
    > P: RESEND s1 everything
      xx unknown_rpcs
      -> P RPC_UNKNOWN s1 +FINISHED prio=7
    ");
}

/// TIME-6: each call asks in its turn. Found by the swarm: with thousands of calls to a busy server
/// the first ones took the places of each burst, and the missing bytes of the last ones never
/// arrived.
#[test]
fn no_call_waits_forever_for_its_turn_to_ask() {
    const CALLS: usize = 2_000;
    let calls = "call P 10\n".repeat(CALLS);
    let config = "config resend_usecs=2000 resend_interval_usecs=2000 timeout_usecs=16000";
    let mut asked = BTreeSet::new();
    converse(&format!("{config}\nmeet P\n{calls}"), 120, |printed| {
        let resends = printed.lines().filter_map(|line| line.split_once("-> P RESEND "));
        let asking = resends.map(|(_, rest)| rest.split(' ').next().unwrap());
        let mut response = String::new();
        for call in asking {
            asked.insert(call.to_owned());
            response += &format!("P: BUSY {call}\n");
        }
        response + "+1ms\n"
    });
    assert_eq!(asked.len(), CALLS);
}
