//! Messages of 0 bytes. Requirements RPC-1, WIRE-30.

use crate::script::run;
use insta::assert_snapshot;

/// RPC-1, WIRE-30: an empty message is one DATA packet without payload, and ends like any other.
#[test]
fn an_empty_request_and_an_empty_response() {
    assert_snapshot!(run("
        meet P
        call P 0
        P: DATA c1 0..0/0
        P: DATA s1 0..0/0
        reply s1 0
        P: ACK s1
        P: DATA s1 0..0/0
        P: NEED_ACK c1
        live
        count client_requests_started client_responses_done server_requests_done server_responses_done
    "), @"
    > call P 0
      -> P DATA c1 0..0/0 cutoffs=1 prio=7
    > P: DATA c1 0..0/0
      !! response c1: 0 B
    > P: DATA s1 0..0/0
      !! request s1 from P: 0 B
    > reply s1 0
      -> P DATA s1 0..0/0 cutoffs=1 ack=c1 prio=7
    > P: ACK s1
    > P: DATA s1 0..0/0
      xx finished
    > P: NEED_ACK c1
      -> P ACK c1 prio=7
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > count client_requests_started client_responses_done server_requests_done server_responses_done
      client_requests_started=2
      client_responses_done=2
      server_requests_done=2
      server_responses_done=2
    ");
}

/// AMO-1: the request of an unknown client is held, although it has no bytes, and executed once.
#[test]
fn an_empty_request_of_an_unknown_client() {
    assert_snapshot!(run("
        P: DATA s1 0..0/0
        live
        P: DATA s1 0..0/0
        P: DATA s1 0..0/0
        P: DATA s1 0..0/0
        reply s1 0
        P: ACK s1
        live
    "), @"
    > P: DATA s1 0..0/0
      -> P NEED_ACK s1 +CONFIRM prio=7
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > P: DATA s1 0..0/0
      !! request s1 from P: 0 B
    > P: DATA s1 0..0/0
      xx duplicate_packets
    > P: DATA s1 0..0/0
      xx duplicate_packets
    > reply s1 0
      -> P DATA s1 0..0/0 prio=6
    > P: ACK s1
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// TIME-5, TIME-7: the client requests everything, as it cannot tell that the response is empty.
#[test]
fn an_empty_response_that_is_lost() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..0/0
        reply s1 0
        +2ms
        P: RESEND s1 everything
        P: RESEND s1 everything
        +2ms
        P: RESEND s1 everything
        P: RESEND s1 0..100
        P: ACK s1
        live
    "), @"
    > P: DATA s1 0..0/0
      !! request s1 from P: 0 B
    > reply s1 0
      -> P DATA s1 0..0/0 cutoffs=1 prio=7
    > +2ms
    > P: RESEND s1 everything
      -> P DATA s1 0..0/0 cutoffs=1 retransmit prio=7
    > P: RESEND s1 everything
      -> P BUSY s1 prio=7
    > +2ms
    > P: RESEND s1 everything
      -> P DATA s1 0..0/0 cutoffs=1 retransmit prio=7
    > P: RESEND s1 0..100
      -> P BUSY s1 prio=7
    > P: ACK s1
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// TIME-3, TIME-8: the request was lost; the server does not have it, and receives it again.
#[test]
fn an_empty_request_that_is_lost() {
    assert_snapshot!(run("
        meet P
        call P 0
        +5ms
        P: RPC_UNKNOWN c1
        +5ms
        P: BUSY c1
        +15ms
        P: DATA c1 0..0/0
        count rpc_restarts resent_packets resent_bytes
    "), @"
    > call P 0
      -> P DATA c1 0..0/0 cutoffs=1 prio=7
    > +5ms
      @5.00ms -> P RESEND c1 everything prio=7
    > P: RPC_UNKNOWN c1
      -> P DATA c1 0..0/0 cutoffs=1 retransmit prio=7
    > +5ms
      @5.00ms -> P RESEND c1 everything prio=7
    > P: BUSY c1
    > +15ms
      @10.00ms -> P RESEND c1 everything prio=7
      @15.00ms -> P RESEND c1 everything prio=7
    > P: DATA c1 0..0/0
      !! response c1: 0 B
    > count rpc_restarts resent_packets resent_bytes
      rpc_restarts=1
      resent_packets=1
      resent_bytes=0
    ");
}

/// TIME-4: the silence of a server counts when an empty request has left, as it does for any other.
#[test]
fn an_empty_request_to_a_silent_server() {
    assert_snapshot!(run("
        config timeout_usecs=20000
        meet P
        call P 0
        +50ms
        live
    "), @"
    > call P 0
      -> P DATA c1 0..0/0 cutoffs=1 prio=7
    > +50ms
      @5.00ms -> P RESEND c1 everything prio=7
      @10.00ms -> P RESEND c1 everything prio=7
      @15.00ms -> P RESEND c1 everything prio=7
      @20.00ms !! failed c1: peer silent for 20 ms after 3 resends; the request may have been executed
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// TIME-9: an empty response waits for its ack, and its server asks for it.
#[test]
fn the_ack_of_an_empty_response_that_is_lost() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..0/0
        reply s1 0
        live
        +5ms
        P: BUSY s1
        +5ms
        P: ACK s1
        live
    "), @"
    > P: DATA s1 0..0/0
      !! request s1 from P: 0 B
    > reply s1 0
      -> P DATA s1 0..0/0 cutoffs=1 prio=7
    > live
      clients=0 servers=1 peers=1 send=1 receive=0 grantable=0 incoming=0 sendable=0 timers=1 control=0
    > +5ms
      @2.50ms -> P NEED_ACK s1 prio=7
    > P: BUSY s1
    > +5ms
      @5.00ms -> P NEED_ACK s1 prio=7
    > P: ACK s1
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// RPC-9: empty messages take acks along, and are acknowledged by them.
#[test]
fn acks_travel_with_empty_messages() {
    assert_snapshot!(run("
        meet P
        call P 0
        P: DATA c1 0..0/0
        call P 0
        P: DATA s1 0..0/0
        reply s1 0
        P: DATA s2 0..0/0 ack=s1
        live
    "), @"
    > call P 0
      -> P DATA c1 0..0/0 cutoffs=1 prio=7
    > P: DATA c1 0..0/0
      !! response c1: 0 B
    > call P 0
      -> P DATA c2 0..0/0 cutoffs=1 ack=c1 prio=7
    > P: DATA s1 0..0/0
      !! request s1 from P: 0 B
    > reply s1 0
      -> P DATA s1 0..0/0 cutoffs=1 prio=7
    > P: DATA s2 0..0/0 ack=s1
      !! request s2 from P: 0 B
    > live
      clients=1 servers=1 peers=1 send=1 receive=0 grantable=0 incoming=0 sendable=0 timers=1 control=0
    ");
}

/// RPC-17, BAD-2: a message cannot become empty, and an empty one gets no bytes: those behind it
/// would be the next packet of the datagram (WIRE-29).
#[test]
fn packets_that_disagree_whether_a_message_is_empty() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/20
        P: DATA s1 0..0/0
        P: DATA s1 10..20/20
        P: DATA s2 0..0/10
        P: DATA s2 0..5/0
        Q: DATA s1 0..0/0
        Q: DATA s1 0..10/10
        Q: DATA s1 0..0/0
        Q: DATA s1 0..10/10
    "), @"
    > P: DATA s1 0..10/20
    > P: DATA s1 0..0/0
      xx length_mismatches
    > P: DATA s1 10..20/20
      !! request s1 from P: 20 B
    > P: DATA s2 0..0/10
      xx malformed
    > P: DATA s2 0..5/0
      xx short_packets
      !! request s2 from P: 0 B
    > Q: DATA s1 0..0/0
      -> Q NEED_ACK s1 +CONFIRM prio=7
    > Q: DATA s1 0..10/10
      !! request s1 from Q: 10 B
    > Q: DATA s1 0..0/0
      xx duplicate_packets
    > Q: DATA s1 0..10/10
      xx duplicate_packets
    ");
}

/// GRANT-9, BAD-7: grants and ranges for an empty message have no effect but a retransmission of
/// its packet.
#[test]
fn grants_and_ranges_of_an_empty_message() {
    assert_snapshot!(run("
        meet P
        call P 0
        P: GRANT c1 1000 level=3
        +2ms
        P: RESEND c1 0..0
        +2ms
        P: RESEND c1 5..10
        P: RESEND c1 4294967290..4294967295
        P: DATA c1 0..0/0
        live
    "), @"
    > call P 0
      -> P DATA c1 0..0/0 cutoffs=1 prio=7
    > P: GRANT c1 1000 level=3
    > +2ms
    > P: RESEND c1 0..0
      -> P DATA c1 0..0/0 cutoffs=1 retransmit prio=7
    > +2ms
    > P: RESEND c1 5..10
      -> P BUSY c1 prio=7
    > P: RESEND c1 4294967290..4294967295
      -> P BUSY c1 prio=7
    > P: DATA c1 0..0/0
      !! response c1: 0 B
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// CAP-1, CAP-6, CAP-8: an empty message counts as one byte, so that an application that consumes
/// nothing stops it.
#[test]
fn limits_hold_for_empty_messages() {
    assert_snapshot!(run("
        config max_message=100 max_receive_bytes=100 max_receive_bytes_per_peer=100 max_send_bytes=100 max_send_bytes_per_peer=100
        meet P
        taking off
        P: DATA s1 0..0/0
        P: DATA s2 0..98/98
        live
        P: DATA s3 0..0/0
        P: DATA s4 0..0/0
        take 0
        live
        P: DATA s4 0..0/0
        call P 0
        call P 99
        call P 0
        live
        cancel c1
        call P 0
    "), @"
    > taking off
    > P: DATA s1 0..0/0
      !! request s1 from P: 0 B
    > P: DATA s2 0..98/98
      !! request s2 from P: 98 B
    > live
      clients=0 servers=2 peers=1 send=0 receive=99 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > P: DATA s3 0..0/0
      !! request s3 from P: 0 B
    > P: DATA s4 0..0/0
      xx no_buffers
    > take 0
    > live
      clients=0 servers=3 peers=1 send=0 receive=99 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > P: DATA s4 0..0/0
      !! request s4 from P: 0 B
    > call P 0
      -> P DATA c1 0..0/0 cutoffs=1 prio=7
    > call P 99
      -> P DATA c2 0..99/99 cutoffs=1 prio=7
    > call P 0
      = max_send_bytes is reached; wait until earlier messages have left
    > live
      clients=2 servers=4 peers=1 send=100 receive=100 grantable=0 incoming=0 sendable=0 timers=2 control=0
    > cancel c1
      !! room
      -> P ACK c1 prio=7
    > call P 0
      -> P DATA c3 0..0/0 cutoffs=1 prio=7
    ");
}

/// CAP-2, CAP-3: the number of empty messages is limited by the RPCs.
#[test]
fn as_many_empty_messages_as_rpcs() {
    assert_snapshot!(run("
        config max_server_rpcs=1 max_client_rpcs=1
        meet P
        P: DATA s1 0..0/0
        P: DATA s2 0..0/0
        call P 0
        call P 0
        Q: DATA s1 0..0/0
        Q: DATA s2 0..0/0
        live
    "), @"
    > P: DATA s1 0..0/0
      !! request s1 from P: 0 B
    > P: DATA s2 0..0/0
      xx too_many_rpcs
      -> P RPC_UNKNOWN s2 +REFUSED(Overloaded) prio=7
    > call P 0
      -> P DATA c1 0..0/0 cutoffs=1 prio=7
    > call P 0
      = max_client_rpcs is reached; wait until earlier calls have ended
    > Q: DATA s1 0..0/0
      -> Q NEED_ACK s1 +CONFIRM prio=7
    > Q: DATA s2 0..0/0
      xx too_many_rpcs
      -> Q RPC_UNKNOWN s2 +REFUSED(Overloaded) prio=7
    > live
      clients=1 servers=1 peers=2 send=1 receive=0 grantable=0 incoming=0 sendable=0 timers=1 control=0
    ");
}

/// AMO-5: an empty request that has not left was not executed; one that has left may have been.
#[test]
fn what_is_known_of_an_empty_call_that_fails() {
    assert_snapshot!(run("
        call P 0 deadline=1ms
        +1ms
        meet Q
        call Q 0 deadline=1ms
        +1ms
        call Q 0
        cancel c2
        call Q 0
        Q: DATA c3 0..10/20
        shutdown
    "), @"
    > call P 0 deadline=1ms
      -> P DATA c1 0..0/0 new prio=6
    > +1ms
      @1.00ms !! failed c1: deadline exceeded; the request was not executed
    > call Q 0 deadline=1ms
      -> Q DATA c1 0..0/0 cutoffs=1 prio=7
    > +1ms
      @1.00ms !! failed c1: deadline exceeded; the request may have been executed
      @1.00ms -> Q ACK c1 prio=7
    > call Q 0
      -> Q DATA c2 0..0/0 cutoffs=1 prio=7
    > cancel c2
      -> Q ACK c2 prio=7
    > call Q 0
      -> Q DATA c3 0..0/0 cutoffs=1 prio=7
    > Q: DATA c3 0..10/20
    > shutdown
      !! failed c3: endpoint shut down; the request was executed, its response is lost
      -> Q ACK c3 prio=7
    ");
}

/// CAP-15: an empty message retains no bytes, whatever the limit.
#[test]
fn keeping_nothing_of_an_empty_message() {
    assert_snapshot!(run("
        keep 0
        meet P
        P: DATA s1 0..0/0
        P: DATA s2 0..10/10
        reply s1 0
        live
    "), @"
    > keep 0
    > P: DATA s1 0..0/0
      !! request s1 from P: 0 B
    > P: DATA s2 0..10/10
      !! request s2 from P: 0 B
    > reply s1 0
      -> P DATA s1 0..0/0 cutoffs=1 prio=7
    > live
      clients=0 servers=2 peers=1 send=1 receive=0 grantable=0 incoming=0 sendable=0 timers=1 control=0
    ");
}

/// PRIO-3: an empty message uses the level of the shortest ones, before and after the first
/// CUTOFFS.
#[test]
fn the_level_of_an_empty_message() {
    assert_snapshot!(run("
        call P 1
        call P 0
        meet Q
        call Q 1
        call Q 0
    "), @"
    > call P 1
      -> P DATA c1 0..1/1 new prio=6
    > call P 0
      -> P DATA c2 0..0/0 new prio=6
    > call Q 1
      -> Q DATA c1 0..1/1 cutoffs=1 prio=7
    > call Q 0
      -> Q DATA c2 0..0/0 cutoffs=1 prio=7
    ");
}

/// RPC-1: the module's messages have at least one byte. The error states that in both directions,
/// and the module's own empty messages do not exist.
#[test]
fn the_kernel_profile_has_no_empty_messages() {
    assert_snapshot!(run("
        config profile=kernel
        call P 0
        P: DATA s1 0..10/10
        reply s1 0
        reply s1 1
        P: DATA s2 0..0/0
    "), @"
    > call P 0
      = the message is empty; in the kernel profile, messages have at least one byte
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 0
      = the message is empty; in the kernel profile, messages have at least one byte
    > reply s1 1
      -> P DATA s1 0..1/1 prio=6
    > P: DATA s2 0..0/0
      xx malformed
    ");
}
