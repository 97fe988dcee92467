//! Random numbers of an endpoint, as far as they reach a peer. Requirement AMO-9.

use apus_proto::{Call, Config, Instant, Payload, Profile, Transport};
use apus_wire::Packet;
use std::net::SocketAddr;

/// AMO-9: a server that is called once receives an incarnation and an id. Until November 2026 both
/// were consecutive outputs of SplitMix64, which is a bijection: the id gave the state of the
/// generator, and with it the ids towards all servers.
#[test]
fn a_server_that_is_called_cannot_compute_the_secret_of_its_client() {
    for seed in 0..64 {
        let [known, other] = called(seed);
        assert!(!is_from_splitmix(known), "{known:x?} of seed {seed}");
        assert_ne!(known.1 & 0xffff_ffff, other.1 & 0xffff_ffff, "ids towards another server");
    }
    let mut state = 0x5eed;
    let incarnation = u64::from(splitmix(&mut state) as u32);
    let first_id = (splitmix(&mut state) >> 2) & !1 | 1 << 61;
    assert!(
        is_from_splitmix((incarnation, first_id)),
        "the attack works where there is a weakness"
    );
}

/// The incarnation and the id that two servers receive with the first call to each of them.
fn called(seed: u128) -> [(u64, u64); 2] {
    let mut transport = Transport::new(Config::default(), 1, seed);
    [2, 3].map(|port| {
        let to = SocketAddr::from(([10, 0, 0, 1], port));
        let payload = Payload::from(vec![0; 10]);
        let call = Call { to, payload, cookie: 0, deadline: None, idempotent: false };
        transport.call(Instant::ZERO, call).unwrap();
        let burst = transport.poll_transmit(Instant::ZERO).unwrap();
        let mut packet = burst.headers().to_vec();
        packet.extend(burst.payload().flatten());
        let header = Packet::parse(Profile::Udp, &packet).unwrap().header;
        (header.udp().unwrap().incarnation, header.sender_id.client_id())
    })
}

/// Whether the id is the output that follows on the incarnation: the attack.
fn is_from_splitmix((incarnation, first_id): (u64, u64)) -> bool {
    // Four bits of the output are not in the id: 0 to 2, and 63.
    (0..16u64).any(|lost| {
        let output = (first_id & !(1 << 61)) << 2 | lost & 7 | lost >> 3 << 63;
        let mut before = unmix(output).wrapping_sub(GAMMA.wrapping_mul(2));
        u64::from(splitmix(&mut before) as u32) == incarnation
    })
}

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GAMMA);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The state that makes SplitMix64 return `output`.
fn unmix(output: u64) -> u64 {
    let mut z = output ^ (output >> 31) ^ (output >> 62);
    z = z.wrapping_mul(0x3196_42b2_d24d_8ec3);
    z = z ^ (z >> 27) ^ (z >> 54);
    z = z.wrapping_mul(0x96de_1b17_3f11_9089);
    z ^ (z >> 30) ^ (z >> 60)
}
