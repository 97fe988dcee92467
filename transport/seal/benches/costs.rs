//! Costs of sealing: processor time to seal, open and refuse a packet, and of full and resumed
//! handshakes (both ends together).
//!
//! `cargo bench -p apus-seal --features tls-ring` (or `tls-aws-lc`). Packets are passed in memory,
//! without a network. Each figure is the median of 21 rounds.

use apus_seal::tls::{Credentials, TlsNegotiator, Trust};
use apus_seal::{Handshakes, Limits, Negotiator, OpenError, Opener, SealEvent, Sealer};
use apus_wire::{HEADER_LEN, SealKind, SealedHeader};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 21;

/// Returns the median time of one call of `work`, in nanoseconds, over rounds of `times` calls.
fn median(times: u32, mut work: impl FnMut()) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            (0..times).for_each(|_| work());
            began.elapsed().as_nanos() as f64 / f64::from(times)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

struct End {
    handshakes: Handshakes,
    keys: Option<(Sealer, Opener)>,
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + end as u8], 7))
}

impl End {
    fn new(negotiator: &Arc<dyn Negotiator>) -> Self {
        let limits = Limits { unproven_per_second: 1_000_000, ..Limits::default() };
        Self {
            handshakes: Handshakes::new(negotiator.clone(), 7, limits, Duration::ZERO),
            keys: None,
        }
    }

    fn receive(&mut self, from: SocketAddr, mut packet: Vec<u8>) {
        let header = SealedHeader::parse(&packet).expect("a packet of version 2");
        if header.kind == Some(SealKind::Ready) {
            if let Some((_, opener)) = &mut self.keys
                && let Ok(len) = opener.open(&mut packet)
            {
                self.handshakes.handle_ready(from, header.id, &packet[HEADER_LEN..len]);
            }
        } else {
            self.handshakes.handle(Duration::ZERO, from, None, &mut packet);
        }
        while let Some(event) = self.handshakes.poll_event() {
            if let SealEvent::Established(new) = event {
                self.keys = Some((new.sealer, new.opener));
            }
        }
    }
}

/// Runs a handshake between two new ends.
fn connect(negotiators: &[Arc<dyn Negotiator>; 2]) -> [End; 2] {
    let mut ends = [End::new(&negotiators[0]), End::new(&negotiators[1])];
    ends[0].handshakes.want(Duration::ZERO, address(1), None).expect("nothing has failed");
    loop {
        let mut quiet = true;
        for from in 0..2 {
            while let Some(datagram) = ends[from].handshakes.poll_transmit() {
                quiet = false;
                ends[1 - from].receive(address(from), datagram.packet);
            }
        }
        if quiet {
            return ends;
        }
    }
}

/// Negotiators with certificates of one CA, as clients and servers of a cluster have them.
fn negotiators(folder: &Path) -> [Arc<dyn Negotiator>; 2] {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    fs::write(folder.join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(params, key);
    ["a", "b"].map(|name| {
        let mut params = CertificateParams::default();
        let uri = format!("spiffe://test/{name}").try_into().unwrap();
        params.subject_alt_names.push(SanType::URI(uri));
        let key = KeyPair::generate().unwrap();
        let (own, secret) = (folder.join("own.pem"), folder.join("own.key"));
        fs::write(&own, params.signed_by(&key, &issuer).unwrap().pem()).unwrap();
        fs::write(&secret, key.serialize_pem()).unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let read = Credentials::certificates(&own, &secret, &folder.join("ca.pem"), None);
        let negotiator = TlsNegotiator::new(&read.unwrap(), Trust::default(), false);
        Arc::new(negotiator.unwrap()) as Arc<dyn Negotiator>
    })
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    // New negotiators have no tickets. Their creation is not timed.
    let mut full: Vec<f64> = (0..5 * ROUNDS)
        .map(|_| {
            let both = negotiators(folder.path());
            let began = Instant::now();
            drop(connect(&both));
            began.elapsed().as_nanos() as f64
        })
        .collect();
    full.sort_by(f64::total_cmp);
    let both = negotiators(folder.path());
    drop(connect(&both));
    let resumed = median(40, || {
        let ends = connect(&both);
        assert_eq!(ends[0].handshakes.counters().handshakes_resumed.get(), 1);
    });
    println!("handshake, both ends          {:8.0} us", full[full.len() / 2] / 1e3);
    println!("handshake, resumed, both ends {:8.0} us", resumed / 1e3);
    let [mut client, mut server] = connect(&both);
    let (sealer, _) = client.keys.as_mut().expect("keys");
    let (_, opener) = server.keys.as_mut().expect("keys");
    for (name, len) in
        [("28 + 0", 0), ("28 + 128", 128), ("28 + 1424", 1_424), ("28 + 8192", 8_192)]
    {
        let mut header = [0; HEADER_LEN];
        let mut body = vec![0x5a; len];
        let seal = median(2_000, || {
            header[13] = 0x11;
            std::hint::black_box(sealer.seal(&mut header, &mut body).unwrap());
        });
        let mut packets = Vec::new();
        let mut rounds = Vec::new();
        let mut forged = Vec::new();
        for _ in 0..ROUNDS {
            packets.clear();
            for _ in 0..500 {
                let mut packet = vec![0x5a; HEADER_LEN + len];
                packet[13] = 0x11;
                let (head, body) = packet.split_at_mut(HEADER_LEN);
                let tag = sealer.seal(head, body).unwrap();
                packet.extend(tag);
                packets.push(packet);
            }
            let mut wrong = packets.clone();
            let began = Instant::now();
            for packet in &mut packets {
                std::hint::black_box(opener.open(packet).unwrap());
            }
            rounds.push(began.elapsed().as_nanos() as f64 / 500.0);
            for packet in &mut wrong {
                // An unused number, so that the tag is checked.
                packet[15] ^= 1;
            }
            let began = Instant::now();
            let mut refused = 0;
            for packet in &mut wrong {
                refused += usize::from(opener.open(packet) == Err(OpenError::Forged));
            }
            forged.push(began.elapsed().as_nanos() as f64 / 500.0);
            assert_eq!(refused, 500);
        }
        rounds.sort_by(f64::total_cmp);
        forged.sort_by(f64::total_cmp);
        let (open, forged) = (rounds[ROUNDS / 2], forged[ROUNDS / 2]);
        println!("{name:<12} seal {seal:6.0} ns   open {open:6.0} ns   forged {forged:6.0} ns");
    }
}
