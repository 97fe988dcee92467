//! A refused process learns only that it was refused.

use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use apus_local::{Connecting, Listener, PeerName};

use crate::child::{ATTACKER, Other, config, name, report};

/// An identity whose bytes are all recognisable.
const IDENTITY: u64 = 0x1122_3344_5566_7788;

/// The attacker: connects without a hello, and reports what it reads.
pub(crate) fn read_refusal(name: &PeerName) {
    let text = name.to_string();
    let address = SocketAddr::from_abstract_name(&text.as_bytes()[1..]).unwrap();
    let mut socket = UnixStream::connect_addr(&address).unwrap();
    let mut bytes = Vec::new();
    // Closed by the server, possibly with a reset.
    let _ = socket.read_to_end(&mut bytes);
    report(&format!("{bytes:?}"));
}

#[test]
fn a_refused_user_does_not_learn_the_identity() {
    let name = name();
    let mut config = config();
    config.identity = IDENTITY;
    let listener = Listener::bind(&PeerName::new(&name), &config).unwrap();
    let Some(mut attacker) = Other::start("read-refusal", &name, ATTACKER, &[]) else { return };
    let accepting = loop {
        match listener.accept().unwrap() {
            Some(accepting) => break accepting,
            None => std::thread::yield_now(),
        }
    };
    drop(accepting);
    let seen = attacker.next().expect("the attacker reports what it read");
    let refusal = "[97, 112, 117, 115, 108, 111, 99, 108, 2, 0, 0, 0, 2, 0, 0, 0, ";
    let nothing = "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]";
    assert_eq!(seen, format!("{refusal}{nothing}"), "version 2, refused for its user");
}

#[test]
fn an_accepted_peer_learns_the_identity() {
    let name = PeerName::new(&name());
    let mut config = config();
    config.identity = IDENTITY;
    let listener = Listener::bind(&name, &config).unwrap();
    config.identity = 7;
    let mut client = Connecting::start(&name, &config).unwrap();
    let server = listener.accept().unwrap().unwrap().advance().unwrap().unwrap();
    let client = client.advance().unwrap().unwrap();
    assert_eq!((server.peer().identity, client.peer().identity), (7, IDENTITY));
}
