//! Endpoints that schedule as one with others of their host.

use crate::echo::echo;
use crate::fixtures::ShutDown;
use crate::fixtures::patient;
use apus::local::{LocalConfig, PeerPolicy};
use apus::{Endpoint, EndpointBuilder};
use std::thread;

/// Returns a builder for endpoints of a group of this test process, which call over the network.
fn member(group: &str) -> EndpointBuilder {
    let group = format!("test/{}/{group}", std::process::id());
    patient().host_group(group).local(false)
}

fn bind(builder: EndpointBuilder) -> Endpoint {
    builder.bind("127.0.0.1:0").unwrap()
}

/// Calls until both endpoints count this many sharers of the link, which takes until the page has
/// arrived.
fn call_until(client: &Endpoint, server: &Endpoint, sharers: [u64; 2]) {
    let counted = |endpoint: &Endpoint| endpoint.metrics().queues.link_sharers;
    while [counted(client), counted(server)] != sharers {
        let reply = client.call(server.local_addr(), &[7; 100_000]).unwrap();
        assert_eq!(reply.len(), 100_000);
    }
}

#[test]
fn endpoints_of_a_group_know_each_other_while_they_are_open() {
    let builder = member("know");
    let client = bind(builder.clone());
    for _ in 0..2 {
        // The line of the one before does not count any more.
        let server = bind(builder.clone());
        let _shut_down = ShutDown(&[&server]);
        echo(server.clone());
        call_until(&client, &server, [2, 2]);
    }
}

#[test]
fn endpoints_without_a_group_share_nothing() {
    let [client, server] = [(); 2].map(|()| bind(patient().local(false)));
    let _shut_down = ShutDown(&[&server]);
    echo(server.clone());
    client.call(server.local_addr(), b"x").unwrap();
    call_until(&client, &server, [0, 0]);
}

#[test]
fn shards_are_members_of_the_group() {
    let client = bind(member("shards").shards(2).serve(false));
    let server = bind(member("shards"));
    let _shut_down = ShutDown(&[&server]);
    echo(server.clone());
    while server.metrics().queues.link_sharers != 3 {
        // Each thread has a separate shard.
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| client.call(server.local_addr(), &[7; 10_000]).unwrap());
            }
        });
    }
}

/// The policy for pages is the policy for shared memory: a group with another policy is a different
/// one.
#[test]
fn the_policy_is_that_of_local_peers() {
    let mut config = LocalConfig::default();
    config.peer_policy = PeerPolicy::Anyone;
    let [open, own] = [member("policy").local_config(config), member("policy")];
    let [open, own] = [open, own].map(bind);
    let _shut_down = ShutDown(&[&own]);
    echo(own.clone());
    call_until(&open, &own, [1, 1]);
}

#[test]
fn a_name_that_is_too_long_is_an_error() {
    let builder = patient().host_group("x".repeat(120));
    let error = builder.bind("127.0.0.1:0").unwrap_err();
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}
