//! What becomes of an empty message at a peer of an older version. Requirements WIRE-31, WIRE-32.

use crate::script::run;
use insta::assert_snapshot;

/// WIRE-31, WIRE-32: the client of an older version would drop an empty response, and time out after a second. The server's
/// application learns it at once, and may answer with a byte or drop the request.
#[test]
fn an_empty_response_to_an_older_client() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10 old
        reply s1 0
        reply s1 1
        P: DATA s2 0..10/10 old
        reply s2 0
        abandon s2
        P: DATA s3 0..10/10
        reply s3 0
    "), @"
    > P: DATA s1 0..10/10 old
      !! request s1 from P: 10 B
    > reply s1 0
      = the reply is empty, and the client's version of apus takes no empty messages
    > reply s1 1
      -> P DATA s1 0..1/1 cutoffs=1 prio=7
    > P: DATA s2 0..10/10 old
      !! request s2 from P: 10 B
    > reply s2 0
      = the reply is empty, and the client's version of apus takes no empty messages
    > abandon s2
      -> P RPC_UNKNOWN s2 +REFUSED(Abandoned) prio=7
    > P: DATA s3 0..10/10
      !! request s3 from P: 10 B
    > reply s3 0
      -> P DATA s3 0..0/0 cutoffs=1 prio=7
    ");
}

/// WIRE-32: a server of an older version drops an empty request as malformed, and then does not know it. The call fails
/// instead of repeating the request forever.
#[test]
fn an_empty_request_to_an_older_server() {
    assert_snapshot!(run("
        meet P
        call P 0
        +5ms
        P: RPC_UNKNOWN c1 old
        call Q 0
        +5ms
        Q: RPC_UNKNOWN c2 old
        call P 10
        +5ms
        P: RPC_UNKNOWN c3 old
        live
    "), @"
    > call P 0
      -> P DATA c1 0..0/0 cutoffs=1 prio=7
    > +5ms
      @5.00ms -> P RESEND c1 everything prio=7
    > P: RPC_UNKNOWN c1 old
      !! failed c1: the request is empty, and the server's version of apus takes no empty messages; the request was not executed
    > call Q 0
      -> Q DATA c2 0..0/0 new prio=6
    > +5ms
      @5.00ms -> Q RESEND c2 everything new prio=7
    > Q: RPC_UNKNOWN c2 old
      !! failed c2: the request is empty, and the server's version of apus takes no empty messages; the request was not executed
    > call P 10
      -> P DATA c3 0..10/10 cutoffs=1 prio=7
    > +5ms
      @5.00ms -> P RESEND c3 everything prio=7
    > P: RPC_UNKNOWN c3 old
      -> P DATA c3 0..10/10 cutoffs=1 retransmit prio=7
    > live
      clients=1 servers=0 peers=2 send=10 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=1 control=0
    ");
}

/// WIRE-32, with the packets of the version before (commit 187c057) as they were recorded: what it sent when it was
/// called with an empty request, by an unknown client and in a session, and what its client sends. The id and the session
/// are those of this script.
#[test]
fn recorded_packets_of_an_older_version() {
    const UNKNOWN: &str = "0050000100000000ffffff135010000000000000396b98ef0579af73";
    const DATA: &str = "005000010000000000000010e01059320dd7000021130f35fd0f1986\
        00000003000000030000000000000000000000000000000000000000000102";
    const CONFIRM: &str = "00500001000000000000001450136fce9ae3000021130f35fd0f1986";
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
      clients=0 servers=0 peers=1 send=0 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
    assert_snapshot!(run(&format!("
        P: raw {DATA}
        P: raw {CONFIRM}
        reply s1451 0
        reply s1451 1
    ")), @"
    > P: raw 005000010000000000000010e01059320dd7000021130f35fd0f198600000003000000030000000000000000000000000000000000000000000102
      -> P NEED_ACK s1451 +CONFIRM prio=7
    > P: raw 00500001000000000000001450136fce9ae3000021130f35fd0f1986
      !! request s1451 from P: 3 B
    > reply s1451 0
      = the reply is empty, and the client's version of apus takes no empty messages
    > reply s1451 1
      -> P DATA s1451 0..1/1 prio=6
    ");
}
