//! Addresses of received packets, and of responses to them.

use super::Fixture;
use super::host::{HEADER_LEN, Host, pattern};
use crate::Burst;

/// `Arrival::from` is an address that responses reach.
pub fn a_response_reaches_the_sender(fixture: &dyn Fixture) {
    let mut server = Host::open(fixture);
    let mut clients: Vec<_> = (0..5).map(|_| Host::open(fixture)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(server.address, &pattern(40, number));
        client.flush();
    }
    for request in server.collect(clients.len()) {
        server.send(request.from, &request.bytes);
    }
    server.flush();
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.collect(1)[0].bytes, pattern(40, number));
    }
}

/// A driver that listens on all addresses reports the local address of each request, and can
/// respond from it.
pub fn a_response_leaves_from_the_address_of_the_request(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    client.send(server.address, &pattern(40, 1));
    client.flush();
    let request = &server.collect(1)[0];
    if let Some(to) = request.to {
        assert_eq!(to, server.address.ip());
    }
    for len in [0, 100, 1400] {
        let payload = pattern(len, len);
        server.send_burst(&Burst {
            to: request.from,
            from: request.to,
            traffic_class: 0,
            headers: &[1; HEADER_LEN],
            header_len: HEADER_LEN,
            payload: &[&payload],
            segment: len,
            coalesce: 0,
        });
        server.flush();
        let response = &client.collect(1)[0];
        assert_eq!(response.from, server.address, "another address would look like another peer");
    }
}

/// The receiver sees the sender's own address.
pub fn the_local_address_is_where_peers_send_to(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    client.send(server.address, &pattern(40, 1));
    client.flush();
    let request = &server.collect(1)[0];
    assert_eq!(request.from.port(), client.address.port());
    assert_eq!(request.from.is_ipv4(), client.address.is_ipv4(), "no IPv4-mapped address");
}
