//! Agreement of the model with the module's documentation and recordings.

use std::net::{IpAddr, Ipv4Addr};

use apus_wire::{Body, Kind, Packet as Written, Profile};
use bytes::Bytes;

use super::{CLIENT_PORT, Module, ModuleEvent, ModulePacket, Objection};
use apus_workload::time::{MILLISECOND, Nanos};

const HOSTS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))];
const PORT: u16 = 4_100;

fn kind(packet: &ModulePacket) -> Kind {
    Written::parse(Profile::Kernel, &packet.bytes).unwrap().body.kind()
}

/// Two modules, and the packets between them.
struct Pair {
    modules: [Module; 2],
    now: Nanos,
    /// Packets since the last call of `said`: sender and kind.
    said: Vec<(usize, Kind)>,
}

impl Pair {
    fn new() -> Self {
        let module = || Module::new(PORT, 1_424, 2);
        Self { modules: [module(), module()], now: 100, said: Vec::new() }
    }

    fn call(&mut self, bytes: usize) {
        let to = (HOSTS[1], PORT);
        self.modules[0].call(self.now, to, vec![7; bytes].into(), 1, None);
    }

    /// Transmits until both modules are out of packets. Packets arrive unless they are `lost`.
    fn talk(&mut self, lost: impl Fn(usize, Kind) -> bool) {
        while let Some((from, packet)) = (0..2).find_map(|from| {
            let packet = self.modules[from].transmit(self.now)?;
            Some((from, packet))
        }) {
            let kind = kind(&packet);
            self.said.push((from, kind));
            if !lost(from, kind) {
                self.modules[1 - from]
                    .handle_packet(self.now, HOSTS[from], &packet.bytes)
                    .unwrap_or_else(|objection| assert!(!objection.is_fault(), "{objection:?}"));
            }
        }
    }

    /// Transmits for `ticks` ticks.
    fn ticks(&mut self, ticks: u64, lost: impl Fn(usize, Kind) -> bool) {
        for _ in 0..ticks {
            self.now = (self.now / MILLISECOND + 1) * MILLISECOND;
            self.modules.iter_mut().for_each(|module| module.handle_timeout(self.now));
            self.talk(&lost);
        }
    }

    fn said(&mut self) -> Vec<(usize, Kind)> {
        std::mem::take(&mut self.said)
    }

    fn request(&mut self) -> (super::ModuleRpcKey, Bytes) {
        match self.modules[1].poll_event() {
            Some(ModuleEvent::Request { rpc, payload }) => (rpc, payload),
            other => panic!("{other:?}"),
        }
    }
}

/// The first packets of the recording of 100-byte echoes.
#[test]
fn a_first_exchange_and_the_next_one() {
    let mut pair = Pair::new();
    pair.call(100);
    pair.talk(|_, _| false);
    let (rpc, request) = pair.request();
    assert!(pair.modules[1].reply(pair.now, rpc, request));
    pair.talk(|_, _| false);
    use Kind::{Cutoffs, Data};
    assert_eq!(pair.said(), [(0, Data), (1, Cutoffs), (1, Data), (0, Cutoffs)]);
    assert!(matches!(pair.modules[0].poll_event(), Some(ModuleEvent::Response { cookie: 1, .. })));
    pair.call(100);
    pair.talk(|_, _| false);
    assert_eq!(pair.said(), [(0, Data)]);
    assert!(!pair.modules[1].live().any(|name| name == rpc), "acknowledged by the request");
}

/// HM `homa_timer.c` `homa_timer_check_rpc`, `homa_incoming.c` `homa_need_ack_pkt`: two ticks after
/// the response, and on every tick.
#[test]
fn need_ack_is_sent_until_a_response_is_acknowledged() {
    let mut pair = Pair::new();
    pair.call(100);
    pair.talk(|_, _| false);
    let (rpc, request) = pair.request();
    pair.modules[1].reply(pair.now, rpc, request);
    pair.talk(|_, _| false);
    pair.said();
    pair.ticks(5, |_, kind| kind == Kind::Ack);
    let of = |kind| (1, kind);
    let said = pair.said();
    assert_eq!(said.iter().filter(|said| **said == of(Kind::NeedAck)).count(), 3, "{said:?}");
    pair.ticks(1, |_, _| false);
    assert_eq!(pair.modules[1].live().count(), 0);
}

/// HM `homa_timer.c` `homa_timer`: its clock starts when the module is loaded.
#[test]
fn modules_tick_at_independent_times() {
    for (phase, now, tick) in
        [(250_000, 100, 250_000), (250_000, 250_000, 1_250_000), (0, 100, MILLISECOND)]
    {
        let mut module = Module::new(PORT, 1_424, 2).ticking_at(phase);
        module.call(now, (HOSTS[1], PORT), vec![7; 100].into(), 1, None);
        assert_eq!(module.next_timeout(), Some(tick));
        module.handle_timeout(tick);
        assert_eq!(module.next_timeout(), Some(tick + MILLISECOND));
    }
}

/// HM `homa_timer.c` `homa_timer_check_rpc`: one every five ticks, until the hundredth.
#[test]
fn a_silent_server_gets_nineteen_resends() {
    let mut pair = Pair::new();
    pair.call(100);
    pair.talk(|from, _| from == 0);
    pair.ticks(99, |from, _| from == 0);
    let said = pair.said();
    assert_eq!(said.iter().filter(|said| **said == (0, Kind::Resend)).count(), 19);
    assert_eq!(pair.modules[0].poll_event(), None);
    pair.ticks(1, |from, _| from == 0);
    let failed = ModuleEvent::Failed { cookie: 1, late: false };
    assert_eq!(pair.modules[0].poll_event(), Some(failed));
    assert_eq!(pair.modules[0].next_timeout(), None);
}

/// HM `homa_grant.c` `homa_grant_try_send`, and the first two GRANTs of the recording of
/// 500,000-byte echoes, (201424, 0) and (251424, 6): the window of one message counts from the
/// received bytes, and the oldest message gets 50,000 for its age.
#[test]
fn a_long_message_is_granted() {
    let mut pair = Pair::new();
    pair.call(500_000);
    let first = pair.modules[0].transmit(pair.now).unwrap();
    pair.modules[1].handle_packet(pair.now, HOSTS[0], &first.bytes).unwrap();
    let grants: Vec<_> = std::iter::from_fn(|| pair.modules[1].transmit(pair.now))
        .filter_map(|packet| match Written::parse(Profile::Kernel, &packet.bytes).unwrap().body {
            Body::Grant(grant) => Some((grant.offset, grant.priority)),
            _ => None,
        })
        .collect();
    assert_eq!(grants, [(201_424, 0), (251_424, 6)]);
}

/// 8.2: violations of the rules for peers are detected.
#[test]
fn objections_name_the_violation() {
    let mut pair = Pair::new();
    pair.call(3_000);
    let first = pair.modules[0].transmit(0).unwrap().bytes;
    let altered = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = first.to_vec();
        change(&mut bytes);
        Module::new(PORT, 1_424, 2).handle_packet(0, HOSTS[0], &bytes)
    };
    assert_eq!(altered(&|_| ()), Ok(()));
    assert_eq!(altered(&|bytes| bytes.truncate(50)), Err(Objection::NoPacket));
    assert_eq!(altered(&|bytes| bytes[3] = 0), Err(Objection::NoSuchPort));
    assert_eq!(altered(&|bytes| bytes[29] = 0x10), Err(Objection::TooLong));
    assert_eq!(altered(&|bytes| bytes[32..36].fill(0)), Err(Objection::NotGranted));
    assert_eq!(altered(&|bytes| bytes[32] = 1), Err(Objection::Untruthful));
    assert_eq!(altered(&|bytes| bytes[47] = 9), Err(Objection::OtherCutoffs));
    assert_eq!(altered(&|bytes| bytes[43] = 9), Err(Objection::NotMine));
    assert_eq!(altered(&|bytes| bytes[11] = Kind::Ack as u8), Ok(()), "padding");
    let response = |bytes: &mut Vec<u8>| {
        bytes[27] |= 1;
        bytes[2..4].copy_from_slice(&CLIENT_PORT.to_be_bytes());
    };
    assert_eq!(altered(&response), Err(Objection::UnknownRpc));
}
