//! RPC_UNKNOWN: RPCs that an end has lost. Source: docs/reference/homa-module.md, *Packets*.

use crate::script::{converse, run};
use insta::assert_snapshot;
use std::collections::BTreeSet;

/// TIME-8, HM `homa_incoming.c` `homa_rpc_unknown_pkt`: the server lost the request: it is sent
/// again from its start, at the unscheduled level.
#[test]
fn a_server_that_lost_the_request() {
    assert_snapshot!(run("
        meet P
        call P 3000
        +1ms
        P: RPC_UNKNOWN c1
        count rpc_restarts
        P: DATA c1 0..100/200
        P: RPC_UNKNOWN c1
    "), @"
    > call P 3000
      -> P DATA c1 0..3000/3000 packets=3 cutoffs=1 prio=5
    > +1ms
    > P: RPC_UNKNOWN c1
      -> P DATA c1 0..3000/3000 packets=3 cutoffs=1 retransmit prio=5
    > count rpc_restarts
      rpc_restarts=1
    > P: DATA c1 0..100/200
    > P: RPC_UNKNOWN c1
      xx wrong_state
    ");
}

/// TIME-8, HM `homa_incoming.c` `homa_rpc_unknown_pkt`: a client that no longer has the RPC frees
/// the server's state.
#[test]
fn a_client_that_lost_the_call() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        P: RPC_UNKNOWN s1
        live
        count server_rpcs_unknown
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > P: RPC_UNKNOWN s1
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > count server_rpcs_unknown
      server_rpcs_unknown=1
    ");
}

/// TIME-15: a client that disclaims one request may have been restarted. Its requests that wait for
/// grants are asked about once, without granting them one after the other.
#[test]
fn a_client_that_lost_one_request_is_asked_about_the_others() {
    assert_snapshot!(run("
        config max_overcommit=1 max_incoming=3000 grant_increment=1000 grant_fifo_fraction=0
        meet P
        meet Q
        P: DATA s1 0..1000/5000 unsched=1000
        P: DATA s2 0..1000/6000 unsched=1000
        P: DATA s3 0..1000/7000 unsched=1000
        Q: DATA s1 0..1000/8000 unsched=1000
        +7ms
        P: RPC_UNKNOWN s1
        +2ms
        P: RPC_UNKNOWN s3
        P: RPC_UNKNOWN s2
        live
    "), @"
    > P: DATA s1 0..1000/5000 unsched=1000
      -> P GRANT s1 2500 level=0 prio=7
    > P: DATA s2 0..1000/6000 unsched=1000
    > P: DATA s3 0..1000/7000 unsched=1000
    > Q: DATA s1 0..1000/8000 unsched=1000
    > +7ms
      @5.00ms -> P RESEND s1 1000..2500 prio=7
      @5.00ms -> P GRANT s2 2500 level=0 prio=7
    > P: RPC_UNKNOWN s1
    > +2ms
      @0.50ms -> P RESEND s3 1000..1000 prio=7
    > P: RPC_UNKNOWN s3
    > P: RPC_UNKNOWN s2
      -> Q GRANT s1 2500 level=0 prio=7
    > live
      clients=0 servers=1 peers=2 send=0 receive=8000 grantable=1 incoming=1500 sendable=0 timers=1 control=0
    ");
}

/// TIME-15: a BUSY shows that the client is alive, and had given up a single request. The others
/// are not asked about.
#[test]
fn a_client_that_lost_one_request_and_knows_another() {
    assert_snapshot!(run("
        config max_overcommit=1 max_incoming=3000 grant_increment=1000 grant_fifo_fraction=0
        meet P
        P: DATA s1 0..1000/5000 unsched=1000
        P: DATA s2 0..1000/6000 unsched=1000
        P: DATA s3 0..1000/7000 unsched=1000
        +7ms
        P: RPC_UNKNOWN s1
        P: BUSY s2
        +2ms
    "), @"
    > P: DATA s1 0..1000/5000 unsched=1000
      -> P GRANT s1 2500 level=0 prio=7
    > P: DATA s2 0..1000/6000 unsched=1000
    > P: DATA s3 0..1000/7000 unsched=1000
    > +7ms
      @5.00ms -> P RESEND s1 1000..2500 prio=7
      @5.00ms -> P GRANT s2 2500 level=0 prio=7
    > P: RPC_UNKNOWN s1
    > P: BUSY s2
    > +2ms
    ");
}

/// TIME-15. Found by the swarm: with one message granted at a time, thousands of requests of a
/// vanished client were found one by one, a resend interval each, and a live call waited for
/// seconds behind them.
#[test]
fn the_requests_of_a_client_that_is_gone_are_found_together() {
    const REQUESTS: usize = 800;
    let config = "config max_overcommit=1 max_incoming=3000 grant_increment=1000";
    let data = |i| format!("P: DATA s{i} 0..1000/5000 unsched=1000\n");
    let requests: String = (1..=REQUESTS).map(data).collect();
    let transcript = converse(&format!("{config}\nmeet P\n{requests}"), 60, |printed| {
        let resends = printed.lines().filter_map(|line| line.split_once("-> P RESEND "));
        let asked: BTreeSet<&str> =
            resends.map(|(_, rest)| rest.split(' ').next().unwrap()).collect();
        let unknown = asked.iter().map(|request| format!("P: RPC_UNKNOWN {request}\n"));
        unknown.collect::<String>() + "+1ms\nlive\n"
    });
    let live = transcript.lines().filter(|line| line.trim_start().starts_with("clients="));
    let live: Vec<_> = live.map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(live[0], format!("servers={REQUESTS}"));
    assert_eq!(live[59], "servers=0", "after 60 ms: {live:?}");
}
