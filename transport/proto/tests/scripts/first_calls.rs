//! A client's calls to a server that does not have its session, or that was restarted.

use crate::script::run;
use insta::assert_snapshot;

/// The client side, AMO-1: the first offer binds all calls to its session. They start over; later
/// calls use it at once. Later offers to packets from before are ignored.
#[test]
fn a_client_is_asked() {
    assert_snapshot!(run("
        call P 10
        call P 10
        P: NEED_ACK c1 +CONFIRM
        P: NEED_ACK c1 +CONFIRM
        P: NEED_ACK c2 +CONFIRM
        call P 10
        P: DATA c1 0..10/10
        call P 10
        P: NEED_ACK c1 +CONFIRM
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 new prio=6
    > call P 10
      -> P DATA c2 0..10/10 new prio=6
    > P: NEED_ACK c1 +CONFIRM
      -> P DATA c1 0..10/10 +CONFIRM prio=6
      -> P DATA c2 0..10/10 +CONFIRM prio=6
    > P: NEED_ACK c1 +CONFIRM
    > P: NEED_ACK c2 +CONFIRM
    > call P 10
      -> P DATA c3 0..10/10 +CONFIRM prio=6
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    > call P 10
      -> P DATA c4 0..10/10 ack=c1 prio=6
    > P: NEED_ACK c1 +CONFIRM
      xx unknown_rpcs
    ");
}

/// An offer that repeats no claim of the call was not made to it: it is late, or forged.
#[test]
fn an_offer_for_another_claim() {
    assert_snapshot!(run("
        call P 10
        P: NEED_ACK c1 +CONFIRM claim=7
        P: NEED_ACK c1 +CONFIRM
        P: NEED_ACK c1 +CONFIRM session=500 claim=7
        P: DATA c1 0..10/10
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 new prio=6
    > P: NEED_ACK c1 +CONFIRM claim=7
      xx stale_sessions
    > P: NEED_ACK c1 +CONFIRM
      -> P DATA c1 0..10/10 +CONFIRM prio=6
    > P: NEED_ACK c1 +CONFIRM session=500 claim=7
      xx stale_sessions
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    ");
}

/// WIRE-33: an older server keeps the request, repeats no claim, and asks until it is answered.
#[test]
fn an_older_server_asks() {
    assert_snapshot!(run("
        call P 10
        P: NEED_ACK c1 +CONFIRM session=500 old
        P: NEED_ACK c1 +CONFIRM session=500 old
        +1ms
        P: DATA c1 0..10/10 session=500 old
        call P 10
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 new prio=6
    > P: NEED_ACK c1 +CONFIRM session=500 old
      -> P DATA c1 0..10/10 retransmit +CONFIRM session=500 prio=6
    > P: NEED_ACK c1 +CONFIRM session=500 old
      -> P DATA c1 0..10/10 retransmit +CONFIRM session=500 prio=6
    > +1ms
    > P: DATA c1 0..10/10 session=500 old
      !! response c1: 10 B
    > call P 10
      -> P DATA c2 0..10/10 ack=c1 session=500 prio=6
    ");
}

/// AMO-3: the server was restarted: calls that it may have executed fail, idempotent ones continue.
#[test]
fn a_restarted_server() {
    assert_snapshot!(run("
        meet P
        call P 10
        call P 10 idempotent
        call P 10
        P: DATA c3 0..10/20
        P: NEED_ACK c1 +CONFIRM session=500
        P: NEED_ACK c2 +CONFIRM session=500
        P: DATA c2 0..10/10 session=500
        call P 10
        P: NEED_ACK c3
        P: NEED_ACK c3 session=500
        count peers_restarted
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > call P 10 idempotent
      -> P DATA c2 0..10/10 cutoffs=1 prio=7
    > call P 10
      -> P DATA c3 0..10/10 cutoffs=1 prio=7
    > P: DATA c3 0..10/20
    > P: NEED_ACK c1 +CONFIRM session=500
      !! failed c1: the server was restarted during the call; the request may have been executed
      !! failed c3: the server was restarted during the call; the request was executed, its response is lost
      -> P DATA c2 0..10/10 cutoffs=1 +CONFIRM session=500 prio=7
    > P: NEED_ACK c2 +CONFIRM session=500
    > P: DATA c2 0..10/10 session=500
      !! response c2: 10 B
    > call P 10
      -> P DATA c4 0..10/10 cutoffs=1 ack=c2 session=500 prio=7
    > P: NEED_ACK c3
      -> P ACK c3 prio=7
    > P: NEED_ACK c3 session=500
      -> P ACK c3 session=500 prio=7
    > count peers_restarted
      peers_restarted=1
    ");
}

/// AMO-11: a request that no server can have completely is sent again, whatever its age.
#[test]
fn a_restarted_server_and_a_request_that_has_not_left() {
    let transcript = run("
        meet P
        call P 200000
        call P 10
        P: NEED_ACK c2 +CONFIRM session=500
    ");
    let failed: Vec<&str> = transcript.lines().filter(|line| line.contains("failed")).collect();
    assert_eq!(failed.len(), 1, "{transcript}");
    assert!(failed[0].contains("failed c2"), "{transcript}");
    let last = transcript.lines().last().unwrap();
    assert!(last.contains("DATA c1 0..") && last.contains("session=500"), "{transcript}");
}

/// AMO-5: a refusal covers the life of the server that sends it. The call's fate in an earlier life
/// is unknown. (Found by the fuzzer.)
#[test]
fn a_restarted_server_that_refuses() {
    assert_snapshot!(run("
        meet P
        call P 10
        call P 10
        call P 10 idempotent
        call Q 10
        P: RPC_UNKNOWN c1 +REFUSED=3
        P: RPC_UNKNOWN c2 +REFUSED=3 inc=0
        P: NEED_ACK c3 +CONFIRM session=500
        P: RPC_UNKNOWN c3 +REFUSED=3 session=500
        Q: RPC_UNKNOWN c4 +REFUSED=3 inc=0
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > call P 10
      -> P DATA c2 0..10/10 cutoffs=1 prio=7
    > call P 10 idempotent
      -> P DATA c3 0..10/10 cutoffs=1 prio=7
    > call Q 10
      -> Q DATA c4 0..10/10 new prio=6
    > P: RPC_UNKNOWN c1 +REFUSED=3
      !! failed c1: the server refused: not serving requests; the request was not executed
    > P: RPC_UNKNOWN c2 +REFUSED=3 inc=0
      xx stale_sessions
    > P: NEED_ACK c3 +CONFIRM session=500
      !! failed c2: the server was restarted during the call; the request may have been executed
      -> P DATA c3 0..10/10 cutoffs=1 +CONFIRM session=500 prio=7
    > P: RPC_UNKNOWN c3 +REFUSED=3 session=500
      !! failed c3: the server refused: not serving requests; the request may have been executed
    > Q: RPC_UNKNOWN c4 +REFUSED=3 inc=0
    ");
}

/// BAD-8: a response from another session than the call was sent in is not taken.
#[test]
fn a_response_from_a_stale_session() {
    assert_snapshot!(run("
        meet P
        call P 10
        P: DATA c1 0..10/10 session=3
        P: GRANT c1 10 level=0 session=3
        P: DATA c1 0..10/10 inc=3
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: DATA c1 0..10/10 session=3
      xx stale_sessions
    > P: GRANT c1 10 level=0 session=3
      xx stale_sessions
    > P: DATA c1 0..10/10 inc=3
      xx stale_sessions
    ");
}

/// AMO-1: before the server has asked, it cannot answer.
#[test]
fn a_response_before_the_question() {
    assert_snapshot!(run("
        call P 10
        P: DATA c1 0..10/10 inc=4
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 new prio=6
    > P: DATA c1 0..10/10 inc=4
      xx stale_sessions
    ");
}

/// A duplicate of a whole request, while the application has it and after its reply.
#[test]
fn a_duplicate_of_a_request_in_service() {
    assert_snapshot!(run("
        P: DATA s1 0..10/10
        P: DATA s1 0..10/10
        P: DATA s1 0..10/10
        reply s1 10
        P: DATA s1 0..10/10
    "), @"
    > P: DATA s1 0..10/10
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > P: DATA s1 0..10/10
      xx duplicate_packets
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > P: DATA s1 0..10/10
      xx duplicate_packets
    ");
}
