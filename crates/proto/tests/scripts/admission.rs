//! At most once: which requests may be executed, and when. Requirements AMO-1 to AMO-6.

use crate::script::run;
use insta::assert_snapshot;

/// AMO-1: an unknown client's request waits until its client has confirmed it, however complete it is.
#[test]
fn a_first_contact() {
    assert_snapshot!(run("
        P: DATA s1 0..100/100
        live
        P: BUSY s1 +CONFIRM
        live
        reply s1 10
        P: DATA s2 0..100/100 ack=s1
    "), @"
    > P: DATA s1 0..100/100
      -> P NEED_ACK s1 +CONFIRM prio=7
    > live
      clients=0 servers=1 peers=1 send=0 receive=0 unconfirmed=100 grantable=0 incoming=0 sendable=0 timers=1 control=0
    > P: BUSY s1 +CONFIRM
      !! request s1 from P: 100 B
    > live
      clients=0 servers=1 peers=1 send=0 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > P: DATA s2 0..100/100 ack=s1
      !! request s2 from P: 100 B
    ");
}

/// A packet that carries the session is as good as the confirmation.
#[test]
fn the_next_packet_confirms() {
    assert_snapshot!(run("
        P: DATA s1 0..100/200
        P: DATA s1 100..200/200
    "), @"
    > P: DATA s1 0..100/200
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s1 100..200/200
      !! request s1 from P: 200 B
    ");
}

/// GRANT-12, AMO-1: no GRANT, no CUTOFFS, no RESEND to an unknown client. Requirement BAD-5: four questions in
/// all, so that a forged address gets at most three times what was sent in its name.
#[test]
fn an_unknown_client_gets_only_the_question() {
    assert_snapshot!(run("
        P: DATA s1 0..1/90000 unsched=2000 cutoffs=0
        P: DATA s1 0..1/90000 unsched=2000 cutoffs=0 inc=80
        +990ms
        P: RESEND s1 everything inc=80
        +10ms
        live
    "), @"
    > P: DATA s1 0..1/90000 unsched=2000 cutoffs=0
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s1 0..1/90000 unsched=2000 cutoffs=0 inc=80
      xx duplicate_packets
    > +990ms
      @5.00ms -> P NEED_ACK s1 +CONFIRM prio=7
      @15.00ms -> P NEED_ACK s1 +CONFIRM prio=7
      @35.00ms -> P NEED_ACK s1 +CONFIRM prio=7
    > P: RESEND s1 everything inc=80
      -> P BUSY s1 prio=7
      -> P NEED_ACK s1 +CONFIRM prio=7
    > +10ms
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// AMO-2: a duplicate from the network's depths, of a call that ended long ago: its client disowns it.
#[test]
fn a_late_duplicate_after_everything_was_forgotten() {
    assert_snapshot!(run("
        P: DATA s1 0..100/100 inc=5
        P: ACK s1 inc=5
        live
        count disowned
    "), @"
    > P: DATA s1 0..100/100 inc=5
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: ACK s1 inc=5
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > count disowned
      disowned=1
    ");
}

/// AMO-2: a duplicate within a session is known to be finished.
#[test]
fn a_late_duplicate_within_the_session() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        P: ACK s1
        P: DATA s1 0..10/10
        P: DATA s1 0..10/10 inc=80
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > P: ACK s1
    > P: DATA s1 0..10/10
      xx finished
    > P: DATA s1 0..10/10 inc=80
      xx finished
    ");
}

/// AMO-2: what the client's low-water mark has passed is refused, although it never arrived.
#[test]
fn a_request_below_the_low_water_mark() {
    assert_snapshot!(run("
        meet P
        P: DATA s5 0..10/10 low=2
        P: DATA s2 0..10/10
        P: DATA s3 0..10/10
    "), @"
    > P: DATA s5 0..10/10 low=2
      !! request s5 from P: 10 B
    > P: DATA s2 0..10/10
      xx finished
    > P: DATA s3 0..10/10
      !! request s3 from P: 10 B
    ");
}

/// AMO-2: a request refused for good is not executed by a duplicate either.
#[test]
fn a_refused_request_stays_refused() {
    assert_snapshot!(run("
        meet P
        serving off
        P: DATA s1 0..10/10
        serving on
        P: DATA s1 0..10/10
        P: DATA s2 0..10/10
    "), @"
    > serving off
    > P: DATA s1 0..10/10
      xx not_serving
      -> P RPC_UNKNOWN s1 +REFUSED(NotServing) prio=7
    > serving on
    > P: DATA s1 0..10/10
      xx finished
    > P: DATA s2 0..10/10
      !! request s2 from P: 10 B
    ");
}

/// AMO-5: a duplicate of a request that was executed is not refused, because its client would take that
/// for a promise.
#[test]
fn an_executed_request_is_not_refused() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        P: ACK s1
        P: DATA s2 0..10/10
        reply s2 10
        shutdown
        P: DATA s1 0..10/10
        P: DATA s2 0..10/10
        P: DATA s2 0..10/10 inc=80
        P: DATA s3 0..10/10
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > P: ACK s1
    > P: DATA s2 0..10/10
      !! request s2 from P: 10 B
    > reply s2 10
      -> P DATA s2 0..10/10 cutoffs=1 prio=7
    > shutdown
    > P: DATA s1 0..10/10
      xx finished
    > P: DATA s2 0..10/10
      xx finished
    > P: DATA s2 0..10/10 inc=80
      xx finished
    > P: DATA s3 0..10/10
      xx not_serving
      -> P RPC_UNKNOWN s3 +REFUSED(ShuttingDown) prio=7
    ");
}

/// AMO-4: a client restarted at the same address gets a new session; its old requests are dropped.
#[test]
fn a_restarted_client() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        P: DATA s2 0..10/20
        P: DATA s500 0..10/10 inc=99
        P: BUSY s500 +CONFIRM
        +1ms
        live
        reply s1 10
        count sessions_replaced
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > P: DATA s2 0..10/20
    > P: DATA s500 0..10/10 inc=99
      -> P NEED_ACK s500 +CONFIRM prio=7
    > P: BUSY s500 +CONFIRM
      !! request s500 from P: 10 B
    > +1ms
    > live
      clients=0 servers=1 peers=1 send=0 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > reply s1 10
      = the RPC has ended
    > count sessions_replaced
      sessions_replaced=1
    ");
}

/// A forgotten session (the server was restarted) is asked about; the packet does not count as proof.
#[test]
fn a_request_in_an_unknown_session() {
    assert_snapshot!(run("
        P: DATA s1 0..10/10 session=12345
        P: BUSY s1 +CONFIRM session=12345
        P: BUSY s1 +CONFIRM
    "), @"
    > P: DATA s1 0..10/10 session=12345
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: BUSY s1 +CONFIRM session=12345
      xx stale_sessions
    > P: BUSY s1 +CONFIRM
      !! request s1 from P: 10 B
    ");
}

/// SESSION-3: the client has cancelled the call that it was asked about. It knows the session nevertheless.
#[test]
fn a_client_that_disowns_its_first_call() {
    assert_snapshot!(run("
        P: DATA s1 0..10/10
        P: ACK s1
        live
        P: DATA s2 0..10/10
        P: DATA s1 0..10/10
    "), @"
    > P: DATA s1 0..10/10
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: ACK s1
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > P: DATA s2 0..10/10
      !! request s2 from P: 10 B
    > P: DATA s1 0..10/10
      xx finished
    ");
}

/// AMO-4, SESSION-4: a late duplicate of an earlier life cannot disturb a first contact.
#[test]
fn a_first_contact_is_not_disturbed() {
    assert_snapshot!(run("
        P: DATA s1 0..10/10
        P: DATA s700 0..10/10 inc=3
        P: BUSY s1 +CONFIRM
        P: DATA s700 0..10/10 inc=3
        P: ACK s700 inc=80
        live
    "), @"
    > P: DATA s1 0..10/10
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s700 0..10/10 inc=3
      xx too_many_unconfirmed
    > P: BUSY s1 +CONFIRM
      !! request s1 from P: 10 B
    > P: DATA s700 0..10/10 inc=3
      -> P NEED_ACK s700 +CONFIRM prio=7
    > P: ACK s700 inc=80
    > live
      clients=0 servers=1 peers=1 send=0 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// The question is repeated until it is answered, then the request is given up; it may come again.
#[test]
fn a_question_without_answer() {
    assert_snapshot!(run("
        config timeout_usecs=20000
        P: DATA s1 0..10/10
        +25ms
        live
        P: DATA s1 0..10/10
    "), @"
    > P: DATA s1 0..10/10
      -> P NEED_ACK s1 +CONFIRM prio=7
    > +25ms
      @5.00ms -> P NEED_ACK s1 +CONFIRM prio=7
      @15.00ms -> P NEED_ACK s1 +CONFIRM prio=7
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > P: DATA s1 0..10/10
      -> P NEED_ACK s1 +CONFIRM prio=7
    ");
}

/// The client asks for the response while its request is held: the question was lost.
#[test]
fn a_resend_repeats_the_question() {
    assert_snapshot!(run("
        P: DATA s1 0..10/10
        P: RESEND s1 everything inc=80
    "), @"
    > P: DATA s1 0..10/10
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: RESEND s1 everything inc=80
      -> P BUSY s1 prio=7
      -> P NEED_ACK s1 +CONFIRM prio=7
    ");
}

/// AMO-6: the session outlives the rest of what is known about an idle client.
#[test]
fn a_client_that_comes_back_after_a_long_time() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        P: ACK s1
        +200s
        live
        P: DATA s1 0..10/10
        P: DATA s2 0..10/10
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > P: ACK s1
    > +200s
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > P: DATA s1 0..10/10
      xx finished
    > P: DATA s2 0..10/10
      !! request s2 from P: 10 B
    ");
}

/// The client side: the first question binds the call to its session; later calls use it at once.
#[test]
fn a_client_is_asked() {
    assert_snapshot!(run("
        call P 10
        call P 10
        P: NEED_ACK c1 +CONFIRM
        P: NEED_ACK c1 +CONFIRM
        call P 10
        P: DATA c1 0..10/10
        P: NEED_ACK c1 +CONFIRM
        P: NEED_ACK c2 +CONFIRM
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 new prio=6
    > call P 10
      -> P DATA c2 0..10/10 new prio=6
    > P: NEED_ACK c1 +CONFIRM
      -> P BUSY c1 +CONFIRM prio=7
    > P: NEED_ACK c1 +CONFIRM
      -> P BUSY c1 +CONFIRM prio=7
    > call P 10
      -> P DATA c3 0..10/10 prio=6
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    > P: NEED_ACK c1 +CONFIRM
      -> P ACK c1 prio=7
    > P: NEED_ACK c2 +CONFIRM
      -> P BUSY c2 +CONFIRM prio=7
    ");
}

/// AMO-3: the server was restarted: calls that it may have executed fail, idempotent ones go on.
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
      -> P ACK c1 session=500 prio=7
    > P: NEED_ACK c2 +CONFIRM session=500
      -> P BUSY c2 +CONFIRM session=500 prio=7
    > P: DATA c2 0..10/10 session=500
      !! response c2: 10 B
    > call P 10
      -> P DATA c4 0..10/10 cutoffs=1 ack=c2 session=500 prio=7
    > count peers_restarted
      peers_restarted=1
    ");
}

/// AMO-5: a refusal speaks for the life of the server that gives it. What an earlier life did with the
/// call is not known. (Found by the fuzzer.)
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
      !! failed c2: the server refused: not serving requests; the request may have been executed
    > P: NEED_ACK c3 +CONFIRM session=500
      -> P BUSY c3 +CONFIRM session=500 prio=7
    > P: RPC_UNKNOWN c3 +REFUSED=3 session=500
      !! failed c3: the server refused: not serving requests; the request may have been executed
    > Q: RPC_UNKNOWN c4 +REFUSED=3 inc=0
      !! failed c4: the server refused: not serving requests; the request was not executed
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
      xx duplicate_packets
      !! request s1 from P: 10 B
    > P: DATA s1 0..10/10
      xx duplicate_packets
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > P: DATA s1 0..10/10
      xx duplicate_packets
    ");
}
