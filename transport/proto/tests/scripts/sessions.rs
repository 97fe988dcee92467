//! Packets without the session of their RPC: off-path hosts send such with any source address.
//! Requirement BAD-8.

use crate::script::run;
use insta::assert_snapshot;

/// Each kind of packet about a live call, with every session but the right one, from the server's
/// address.
#[test]
fn about_a_call() {
    assert_snapshot!(run("
        meet P
        call P 3000
        P: DATA c1 0..10/10 inc=3
        P: GRANT c1 3000 level=0 session=3
        P: RESEND c1 everything inc=3
        P: BUSY c1 inc=3
        P: BUSY c1 session=3
        P: RPC_UNKNOWN c1 inc=3
        P: RPC_UNKNOWN c1 +REFUSED=1 inc=3
        P: RPC_UNKNOWN c1 +REFUSED=1 session=3
        P: RPC_UNKNOWN c1 +FINISHED inc=3
        P: NEED_ACK c1 session=3
        P: NEED_ACK c1 +CONFIRM session=3 claim=3
        P: CUTOFFS c1 9 inc=3
        live
    "), @"
    > call P 3000
      -> P DATA c1 0..3000/3000 packets=3 cutoffs=1 prio=5
    > P: DATA c1 0..10/10 inc=3
      xx stale_sessions
    > P: GRANT c1 3000 level=0 session=3
      xx stale_sessions
    > P: RESEND c1 everything inc=3
      xx stale_sessions
    > P: BUSY c1 inc=3
      xx stale_sessions
    > P: BUSY c1 session=3
      xx stale_sessions
    > P: RPC_UNKNOWN c1 inc=3
      xx stale_sessions
    > P: RPC_UNKNOWN c1 +REFUSED=1 inc=3
      xx stale_sessions
    > P: RPC_UNKNOWN c1 +REFUSED=1 session=3
      xx stale_sessions
    > P: RPC_UNKNOWN c1 +FINISHED inc=3
      xx stale_sessions
    > P: NEED_ACK c1 session=3
      xx stale_sessions
    > P: NEED_ACK c1 +CONFIRM session=3 claim=3
      xx stale_sessions
    > P: CUTOFFS c1 9 inc=3
      xx stale_sessions
    > live
      clients=1 servers=0 peers=1 send=3000 receive=0 grantable=0 incoming=0 sendable=0 timers=1 control=0
    ");
}

/// Each kind of packet about a live request, from the client's address.
#[test]
fn about_a_request() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/20
        P: DATA s2 0..10/10
        reply s2 3000
        P: DATA s1 10..20/20 inc=80
        P: DATA s1 10..20/20 session=3
        P: GRANT s2 3000 level=0 session=3
        P: RESEND s2 everything inc=80
        P: BUSY s2 inc=80
        P: RPC_UNKNOWN s2 inc=80
        P: RPC_UNKNOWN s2 session=3
        P: ACK s2 inc=80
        P: ACK s2 session=3
        P: DATA s3 0..10/10 ack=s2 session=3
        P: CUTOFFS s2 9 session=3
        live
    "), @"
    > P: DATA s1 0..10/20
    > P: DATA s2 0..10/10
      !! request s2 from P: 10 B
    > reply s2 3000
      -> P DATA s2 0..3000/3000 packets=3 cutoffs=1 prio=5
    > P: DATA s1 10..20/20 inc=80
      xx stale_sessions
    > P: DATA s1 10..20/20 session=3
      xx stale_sessions
    > P: GRANT s2 3000 level=0 session=3
      xx stale_sessions
    > P: RESEND s2 everything inc=80
      xx stale_sessions
    > P: BUSY s2 inc=80
      xx stale_sessions
    > P: RPC_UNKNOWN s2 inc=80
      xx stale_sessions
    > P: RPC_UNKNOWN s2 session=3
      xx stale_sessions
    > P: ACK s2 inc=80
      xx stale_sessions
    > P: ACK s2 session=3
      xx stale_sessions
    > P: DATA s3 0..10/10 ack=s2 session=3
      -> P NEED_ACK s3 +CONFIRM prio=7
    > P: CUTOFFS s2 9 session=3
      xx stale_sessions
    > live
      clients=0 servers=2 peers=1 send=3000 receive=20 grantable=0 incoming=0 sendable=0 timers=2 control=0
    ");
}

/// NEED_ACK about a call that has ended releases acks to the server alone.
#[test]
fn about_a_call_that_has_ended() {
    assert_snapshot!(run("
        meet P
        call P 10
        P: DATA c1 0..10/10
        P: NEED_ACK c1 session=3
        P: NEED_ACK c1 inc=3
        Q: NEED_ACK c1
        P: NEED_ACK c1
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    > P: NEED_ACK c1 session=3
      xx stale_sessions
    > P: NEED_ACK c1 inc=3
      xx stale_sessions
    > Q: NEED_ACK c1
      xx stale_sessions
    > P: NEED_ACK c1
      -> P ACK c1 prio=7
    ");
}

/// RPC_UNKNOWN repeats the session of the RESEND that it answers, so it reveals nothing to a
/// forger. A refusal states the server's session.
#[test]
fn what_an_answer_says_about_sessions() {
    assert_snapshot!(run("
        meet P
        P: RESEND s1 everything session=3
        P: RESEND s1 everything inc=3
        serving off
        P: DATA s2 0..10/10 session=3
        P: DATA s3 0..10/10
    "), @"
    > P: RESEND s1 everything session=3
      xx unknown_rpcs
      -> P RPC_UNKNOWN s1 session=3 prio=7
    > P: RESEND s1 everything inc=3
      xx unknown_rpcs
      -> P RPC_UNKNOWN s1 prio=7
    > serving off
    > P: DATA s2 0..10/10 session=3
      -> P NEED_ACK s2 +CONFIRM prio=7
    > P: DATA s3 0..10/10
      xx not_serving
      -> P RPC_UNKNOWN s3 +REFUSED(NotServing) prio=7
    ");
}

/// AMO-1: a client that has forgotten its session, and sends a request again that was finished in
/// it, is offered the session: only in it can the client be notified that the request is finished.
/// A late duplicate is dropped. (It asked and sent without end: seed 1237.)
#[test]
fn a_finished_request_of_a_client_without_its_session() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        P: ACK s1
        P: DATA s1 0..10/10 inc=80
        P: DATA s1 0..10/10 inc=80 retransmit
        P: DATA s1 0..10/10 retransmit
        P: RESEND s1 everything
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > P: ACK s1
    > P: DATA s1 0..10/10 inc=80
      xx finished
    > P: DATA s1 0..10/10 inc=80 retransmit
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s1 0..10/10 retransmit
      xx finished
    > P: RESEND s1 everything
      xx unknown_rpcs
      -> P RPC_UNKNOWN s1 +FINISHED prio=7
    ");
}

/// AMO-4, TIME-12: the requests of an earlier life end a few at a time, and their client is asked
/// nothing in the meantime. (A server with 2,000 of them asked for the acks of half, in a session
/// that the client does not have: sealed seed 844 of the swarm.)
#[test]
fn requests_of_an_earlier_life_ask_for_nothing() {
    assert_snapshot!(run("
        config reap_limit=1
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        P: DATA s2 0..10/10
        reply s2 10
        P: DATA s3 0..10/10
        reply s3 10
        P: DATA s4 0..10/10 inc=81
        P: DATA s4 0..10/10
        stopped 3ms
        live
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > P: DATA s2 0..10/10
      !! request s2 from P: 10 B
    > reply s2 10
      -> P DATA s2 0..10/10 cutoffs=1 prio=7
    > P: DATA s3 0..10/10
      !! request s3 from P: 10 B
    > reply s3 10
      -> P DATA s3 0..10/10 cutoffs=1 prio=7
    > P: DATA s4 0..10/10 inc=81
      -> P NEED_ACK s4 +CONFIRM prio=7
    > P: DATA s4 0..10/10
      !! request s4 from P: 10 B
    > stopped 3ms
    > live
      clients=0 servers=1 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}
