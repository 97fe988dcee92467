//! Empty messages at a peer of an older version. Requirements WIRE-31, WIRE-32.

use crate::script::run;
use insta::assert_snapshot;

/// WIRE-32: a server of an older version drops an empty request as malformed, and then does not
/// have it. The call fails instead of repeating the request forever.
#[test]
fn an_empty_request_to_an_older_server() {
    assert_snapshot!(run("
        call P 10
        P: NEED_ACK c1 +CONFIRM session=500 old
        P: DATA c1 0..10/10 session=500 old
        call P 0
        +5ms
        P: RPC_UNKNOWN c2 session=500 old
        call Q 0
        +5ms
        Q: RPC_UNKNOWN c3 inc=0 old
        call P 10
        +5ms
        P: RPC_UNKNOWN c4 session=500 old
        live
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 new prio=6
    > P: NEED_ACK c1 +CONFIRM session=500 old
      -> P DATA c1 0..10/10 retransmit +CONFIRM session=500 prio=6
    > P: DATA c1 0..10/10 session=500 old
      !! response c1: 10 B
    > call P 0
      -> P DATA c2 0..0/0 ack=c1 session=500 prio=6
    > +5ms
      @5.00ms -> P RESEND c2 everything session=500 prio=7
    > P: RPC_UNKNOWN c2 session=500 old
      !! failed c2: the request is empty, and the server's version of apus takes no empty messages; the request was not executed
    > call Q 0
      -> Q DATA c3 0..0/0 new prio=6
    > +5ms
      @5.00ms -> Q RESEND c3 everything new prio=7
    > Q: RPC_UNKNOWN c3 inc=0 old
      !! failed c3: the request is empty, and the server's version of apus takes no empty messages; the request was not executed
    > call P 10
      -> P DATA c4 0..10/10 session=500 prio=6
    > +5ms
      @5.00ms -> P RESEND c4 everything session=500 prio=7
    > P: RPC_UNKNOWN c4 session=500 old
      -> P DATA c4 0..10/10 retransmit session=500 prio=6
    > live
      clients=1 servers=0 peers=2 send=10 receive=0 grantable=0 incoming=0 sendable=0 timers=1 control=0
    ");
}

/// WIRE-32, WIRE-33, with the packets of the previous version (commit 187c057) as recorded: its
/// answer to an empty request of an unknown client, and its client's packets. The id is this
/// script's.
#[test]
fn recorded_packets_of_an_older_version() {
    const UNKNOWN: &str = "0050000100000000ffffff135010000000000000396b98ef0579af73";
    const DATA: &str = "005000010000000000000010e01059320dd7000021130f35fd0f1986\
        00000003000000030000000000000000000000000000000000000000000102";
    assert_snapshot!(run(&format!("
        call P 0
        +5ms
        P: raw {UNKNOWN}
        live
    ")), @"
    > call P 0
      -> P DATA c1 0..0/0 new prio=6
    > +5ms
      @5.00ms -> P RESEND c1 everything new prio=7
    > P: raw 0050000100000000ffffff135010000000000000396b98ef0579af73
      !! failed c1: the request is empty, and the server's version of apus takes no empty messages; the request was not executed
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
    assert_snapshot!(run(&format!("
        P: raw {DATA}
        live
    ")), @"
    > P: raw 005000010000000000000010e01059320dd7000021130f35fd0f198600000003000000030000000000000000000000000000000000000000000102
      xx client_too_old
      -> P RPC_UNKNOWN s1451 +REFUSED(ClientTooOld) prio=7
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// WIRE-33: a call in a session of 48 bits takes no offer that repeats no claim: its id would be
/// the only secret of the packet. Its response is taken as if there had been no offer.
#[test]
fn an_offer_without_a_claim_for_a_call_in_a_long_session() {
    assert_snapshot!(run("
        meet P
        call P 10
        P: NEED_ACK c1 +CONFIRM session=500 old
        live
        P: DATA c1 0..10/10
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: NEED_ACK c1 +CONFIRM session=500 old
      xx stale_sessions
    > live
      clients=1 servers=0 peers=1 send=10 receive=0 grantable=0 incoming=0 sendable=0 timers=1 control=0
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    ");
}

/// WIRE-33: in a session of 32 bits such an offer shows that the older server was restarted.
#[test]
fn an_offer_without_a_claim_for_a_call_in_a_short_session() {
    assert_snapshot!(run("
        call P 10
        P: NEED_ACK c1 +CONFIRM session=500 old
        P: NEED_ACK c1 +CONFIRM session=501 old
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 new prio=6
    > P: NEED_ACK c1 +CONFIRM session=500 old
      -> P DATA c1 0..10/10 retransmit +CONFIRM session=500 prio=6
    > P: NEED_ACK c1 +CONFIRM session=501 old
      !! failed c1: the server was restarted during the call; the request may have been executed
    ");
}
