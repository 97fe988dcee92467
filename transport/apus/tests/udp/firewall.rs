//! The kernel refuses to send, as it does for a firewall rule.
//!
//! Without nft or iptables: a routing rule `prohibit` makes sends fail with EACCES. The test runs
//! again inside a separate network namespace.

use super::{echo_pair, failure, over_udp};
use crate::namespace::Namespace;
use apus::{Config, Endpoint, FailureKind};
use std::process::Command;

/// The rule must precede the table of local addresses, which has preference 0.
const SETUP: &str = "ip link set lo up; ip rule add pref 100 lookup local; ip rule del pref 0";
const NAME: &str = "firewall::a_firewall_rule_costs_packets_and_no_call";

/// Adds or deletes the rule, and checks that `ip` did so.
fn rule(action: &str) {
    let words = ["rule", action, "pref", "50", "to", "127.0.0.0/8", "prohibit"];
    assert!(Command::new("ip").args(words).status().unwrap().success(), "ip rule {action}");
}

fn refused(endpoint: &Endpoint) -> u64 {
    endpoint.metrics().protocol.recovery.sends_not_permitted
}

#[test]
fn a_firewall_rule_costs_packets_and_no_call() {
    Namespace { needs: "ip with rules", check: SETUP, setup: SETUP }.run(NAME, inside);
}

fn inside() {
    let (client, server, echo) = echo_pair(&over_udp().config(Config::default()));
    client.call(server, "first").unwrap();
    std::thread::scope(|scope| {
        rule("add");
        let before = refused(&client);
        let call = scope.spawn(|| client.call(server, "through"));
        while refused(&client) == before {
            std::thread::yield_now();
        }
        rule("del");
        assert_eq!(call.join().unwrap().unwrap(), "through");
    });
    rule("add");
    let error = failure(client.call(server, "nothing passes"));
    assert_eq!(error.kind, FailureKind::NotPermitted, "{error}");
    rule("del");
    client.call(server, "last").unwrap();
    drop(echo);
}
