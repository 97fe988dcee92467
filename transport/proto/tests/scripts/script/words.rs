//! The words of a script.

use std::net::SocketAddr;

pub(super) fn address(peer: &str) -> SocketAddr {
    let letter = peer.bytes().next().unwrap();
    SocketAddr::from(([10, 0, 1, letter], u16::from(letter)))
}

pub(super) fn name(address: SocketAddr) -> char {
    match address {
        SocketAddr::V4(address) => char::from(address.ip().octets()[3]),
        SocketAddr::V6(_) => '?',
    }
}

pub(super) fn key_value(word: &str) -> (&str, &str) {
    word.split_once('=').unwrap_or((word, ""))
}

pub(super) fn number(word: &str) -> u64 {
    word.replace('_', "").parse().unwrap()
}

pub(super) fn nanos(time: &str) -> u64 {
    let split = time.find(|c: char| c.is_alphabetic()).unwrap();
    let value: f64 = time[..split].parse().unwrap();
    let unit = match &time[split..] {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        other => panic!("no such unit: {other}"),
    };
    (value * unit) as u64
}
