//! Addresses that name no host, or one only with an interface.

use crate::echo::echo;
use crate::fixtures::patient;
use apus::{CallError, CallOptions, CommandError, Endpoint, Execution, OutgoingCall};
use std::net::SocketAddr;

/// An unspecified address is this host, as for TCP.
#[test]
fn an_unspecified_destination_is_this_host() {
    for (bind, to) in [("0.0.0.0:0", "0.0.0.0"), ("[::]:0", "::"), ("[::]:0", "0.0.0.0")] {
        for local in [true, false] {
            let Ok(server) = patient().local(local).bind(bind) else {
                eprintln!("SKIPPED: {bind} cannot be bound");
                continue;
            };
            let serving = echo(server.clone());
            let client = patient().local(local).client().unwrap();
            let to = SocketAddr::new(to.parse().unwrap(), server.local_addr().port());
            assert_eq!(client.call(to, "hello").unwrap(), "hello", "{bind}, {to}");
            let mut calls = vec![OutgoingCall { to, request: "many".into(), cookie: 1 }];
            client.send_many(&mut calls, CallOptions::new()).unwrap();
            assert_eq!(client.recv_completion().unwrap().result.unwrap(), "many");
            server.shutdown();
            serving.join().unwrap();
        }
    }
}

/// A destination that is no host, or needs an interface, is refused before anything is sent.
#[test]
fn a_destination_that_is_no_host_is_refused() {
    let client = Endpoint::client().unwrap();
    for (to, reason) in [
        ("224.0.0.1:4000", CommandError::NoHost),
        ("255.255.255.255:4000", CommandError::NoHost),
        ("[ff02::1%1]:4000", CommandError::NoHost),
        ("[fe80::1]:4000", CommandError::NeedsInterface),
    ] {
        let error = client.call(to.parse().unwrap(), "hello").unwrap_err();
        assert_eq!(error.execution(), Execution::NotExecuted, "{to}");
        let CallError::Rejected(rejected) = error else { panic!("{to}: {error:?}") };
        assert_eq!(rejected, reason, "{to}");
    }
}

/// The standard library reads no names of interfaces.
#[test]
fn an_endpoint_is_bound_to_an_address_with_an_interface() {
    let error = Endpoint::bind("[fe80::1]:0").unwrap_err().to_string();
    assert!(error.contains("needs %interface"), "{error}");
    let error = Endpoint::bind("[fe80::1%nosuch]:0").unwrap_err().to_string();
    assert!(error.contains("no interface \"nosuch\""), "{error}");
    // This host has no such address; its interface is found.
    let error = Endpoint::bind("[fe80::1234%lo]:0").unwrap_err().to_string();
    assert!(error.contains("[fe80::1234%1]:0"), "{error}");
}
