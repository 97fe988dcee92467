//! Packets that wait in sockets: silence, bytes in flight, and the room for unscheduled bytes (ADR
//! 27).

use crate::script::run;
use insta::assert_snapshot;

/// TIME-3: unread packets are no silence.
#[test]
fn a_receiver_that_has_not_read_asks_for_nothing() {
    assert_snapshot!(run("
        meet P
        finish_reading
        call P 10
        +20ms
        P: DATA c1 0..1000/3000
        finish_reading
        +4ms
        finish_reading
        +3ms
        finish_reading
        +3ms
    "), @"
    > finish_reading
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > +20ms
    > P: DATA c1 0..1000/3000
    > finish_reading
    > +4ms
    > finish_reading
    > +3ms
    > finish_reading
    > +3ms
      @0.50ms -> P RESEND c1 1000..3000 prio=7
    ");
}

/// TIME-4: a process that was stopped for longer than the timeout reads first, and blames no peer.
#[test]
fn a_process_that_was_stopped_reads_before_it_blames_its_peers() {
    assert_snapshot!(run("
        config timeout_usecs=20000
        meet P
        finish_reading
        call P 10
        +500ms
        P: DATA c1 0..10/10
    "), @"
    > finish_reading
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > +500ms
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    ");
}

/// TIME-3: each BUSY doubles the interval, and DATA ends that.
#[test]
fn a_busy_peer_is_asked_half_as_often() {
    assert_snapshot!(run("
        meet P
        call P 10
        +8ms
        P: BUSY c1
        +12ms
        P: BUSY c1
        +24ms
        P: DATA c1 0..1000/3000 retransmit
        +8ms
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > +8ms
      @5.00ms -> P RESEND c1 everything prio=7
    > P: BUSY c1
    > +12ms
      @12.00ms -> P RESEND c1 everything prio=7
    > P: BUSY c1
    > +24ms
      @20.00ms -> P RESEND c1 everything prio=7
    > P: DATA c1 0..1000/3000 retransmit
    > +8ms
      @6.00ms -> P RESEND c1 1000..3000 prio=7
    ");
}

/// TIME-7: a RESEND that has waited carries no information about bytes sent in the meantime.
#[test]
fn a_resend_that_has_waited_is_answered_with_busy() {
    assert_snapshot!(run("
        meet P
        begin_reading
        +2ms
        call P 10
        +2ms
        P: RESEND c1 everything
        begin_reading
        P: RESEND c1 everything
    "), @"
    > begin_reading
    > +2ms
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > +2ms
    > P: RESEND c1 everything
      -> P BUSY c1 prio=7
    > begin_reading
    > P: RESEND c1 everything
      -> P DATA c1 0..10/10 cutoffs=1 retransmit prio=7
    ");
}

/// TIME-8: the same for a server that did not have the request when it was asked.
#[test]
fn an_unknown_request_that_is_on_its_way_is_not_sent_again() {
    assert_snapshot!(run("
        meet P
        begin_reading
        call P 10
        +4ms
        P: RPC_UNKNOWN c1
        begin_reading
        P: RPC_UNKNOWN c1
    "), @"
    > begin_reading
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > +4ms
    > P: RPC_UNKNOWN c1
    > begin_reading
    > P: RPC_UNKNOWN c1
      -> P DATA c1 0..10/10 cutoffs=1 retransmit prio=7
    ");
}

/// TIME-9: a busy client is asked about a few responses at a time.
#[test]
fn few_responses_are_asked_about_at_a_time() {
    let requests: String =
        (1..=40).map(|n| format!("P: DATA s{n} 0..10/10\nreply s{n} 10\n")).collect();
    let transcript = run(&format!("meet P\n{requests}+3ms\nlive\nP: ACK s1\n+3ms\nlive"));
    let parts: Vec<&str> = transcript.split("> live").collect();
    let asked = parts.iter().map(|part| part.matches("NEED_ACK").count());
    assert_eq!(asked.collect::<Vec<_>>(), [16, 1, 0], "one for the ACK");
}

/// TIME-9: a client that was stopped has lost most of a round of NEED_ACKs and responds to all
/// later ones. The places of the lost ones are freed although it responds all the time.
#[test]
fn lost_questions_about_responses_are_given_up_while_others_are_answered() {
    const LOST: u32 = 13;
    let requests: String =
        (1..=60).map(|n| format!("P: DATA s{n} 0..10/10\nreply s{n} 10\n")).collect();
    let ack = |ids: std::ops::Range<u32>| ids.map(|n| format!("P: ACK s{n}\n")).collect::<String>();
    let mut script = format!("config need_ack_usecs=10000\nmeet P\n{requests}+8ms\n+2ms\nlive\n");
    script += &ack(LOST + 1..17);
    // The three places of the responses, each check.
    for check in 0..7 {
        let first = 17 + 3 * check;
        script += &format!("+2500us\nlive\n{}", ack(first..first + 3));
    }
    let transcript = run(&(script + "+2500us"));
    let asked = transcript.split("> live").map(|part| part.matches("NEED_ACK").count());
    assert_eq!(asked.collect::<Vec<_>>(), [16, 3, 3, 3, 3, 3, 3, 3, 16]);
}

/// TIME-14: after a known drop, missing bytes are requested as soon as everything has been read.
#[test]
fn a_known_drop_is_asked_for_at_once() {
    assert_snapshot!(run("
        meet P
        finish_reading
        P: DATA s1 0..1000/3000
        +1ms
        overflow
        +500us
        finish_reading
        +2ms
    "), @"
    > finish_reading
    > P: DATA s1 0..1000/3000
    > +1ms
    > overflow
    > +500us
    > finish_reading
    > +2ms
      @0.00ms -> P RESEND s1 1000..3000 prio=7
    ");
}

/// PRIO-12, WIRE-28: unscheduled bytes stay below the peer's room; GRANTs and responses return it.
#[test]
fn unscheduled_bytes_stay_below_the_room_of_the_peer() {
    assert_snapshot!(run("
        meet P
        P: CUTOFFS c9 1 room=15000
        call P 40000
        call P 40000
        call P 40000
        call P 100
        P: GRANT c1 40000
        call P 40000
        P: DATA c2 0..10/10
        call P 10000
    "), @"
    > P: CUTOFFS c9 1 room=15000
    > call P 40000
      -> P DATA c1 0..10000/40000 incoming=10000 packets=8 cutoffs=1 prio=4
    > call P 40000
      -> P DATA c2 0..5000/40000 incoming=5000 packets=4 cutoffs=1 prio=4
    > call P 40000
      -> P DATA c3 0..1396/40000 incoming=1396 cutoffs=1 prio=4
    > call P 100
      -> P DATA c4 0..100/100 cutoffs=1 prio=7 shares=1452
    > P: GRANT c1 40000
      -> P DATA c1 10000..40000/40000 incoming=10000 packets=22 cutoffs=1 prio=0
    > call P 40000
      -> P DATA c5 0..8504/40000 incoming=8504 packets=7 cutoffs=1 prio=4
    > P: DATA c2 0..10/10
      !! response c2: 10 B
    > call P 10000
      -> P DATA c6 0..5000/10000 incoming=5000 packets=4 cutoffs=1 ack=c2 prio=5
    ");
}

/// PRIO-13: the room is shared by the peers, and stated with the cutoffs.
#[test]
fn the_room_is_stated_with_the_cutoffs() {
    assert_snapshot!(run("
        buffer 8000000
        meet P
        P: DATA s1 0..1/1 cutoffs=0
        meet Q
        meet R
        +2s
        P: DATA s2 0..1/1
        Q: DATA s1 0..1/1 cutoffs=0
    "), @"
    > buffer 8000000
    > P: DATA s1 0..1/1 cutoffs=0
      !! request s1 from P: 1 B
      -> P CUTOFFS s1 v1 [0, 0, 0, 0, 4294967295, 15000, 2800, 200] room=2000000 prio=7
    > +2s
    > P: DATA s2 0..1/1
      !! request s2 from P: 1 B
      -> P CUTOFFS s2 v2 [0, 0, 0, 0, 4294967295, 15000, 2800, 200] room=500000 prio=7
    > Q: DATA s1 0..1/1 cutoffs=0
      !! request s1 from Q: 1 B
      -> Q CUTOFFS s1 v2 [0, 0, 0, 0, 4294967295, 15000, 2800, 200] room=500000 prio=7
    ");
}

/// TIME-9: a client that answers with BUSY is asked at growing intervals; a GRANT resets them.
#[test]
fn a_client_that_grants_late_is_asked_less_and_less_often() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        reply s1 40000
        +3ms
        P: BUSY s1
        +5ms
        P: BUSY s1
        +5ms
        +5ms
        P: GRANT s1 20000
        +3ms
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 40000
      -> P DATA s1 0..10000/40000 incoming=10000 packets=8 cutoffs=1 prio=4
    > +3ms
      @2.50ms -> P NEED_ACK s1 prio=7
    > P: BUSY s1
    > +5ms
      @4.50ms -> P NEED_ACK s1 prio=7
    > P: BUSY s1
    > +5ms
    > +5ms
      @4.50ms -> P NEED_ACK s1 prio=7
    > P: GRANT s1 20000
      -> P DATA s1 10000..21168/40000 incoming=10000 packets=8 cutoffs=1 prio=0
    > +3ms
      @2.00ms -> P NEED_ACK s1 prio=7
    ");
}
