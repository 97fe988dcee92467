//! Which packets may leave from other ports than their sender's. Requirements SEND-15 and WIRE-36.

use apus_proto::{Call, Config, Datagram, Event, Instant, Payload, Profile, Transport};
use apus_wire::{Body, Features, Header, Packet};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

const LENGTH: usize = 300_000;
/// The DATA packet that is lost, in each direction.
const LOST: usize = 150;

/// A packet that left, with its statements about spraying.
struct Sent {
    by_client: bool,
    /// The first byte, and whether it was sent again, of DATA; `None` of other packets.
    data: Option<(u32, bool)>,
    is_sprayed: bool,
    is_sprayable: bool,
    is_grant: bool,
    unscheduled: u32,
}

/// Two endpoints, and the port that the server sees as the client's.
struct Pair {
    ends: [Transport; 2],
    seen_as: [SocketAddr; 2],
    now: Instant,
    sent: Vec<Sent>,
    datas: [usize; 2],
    /// Whether a filter drops packets from other ports.
    is_filtered: bool,
}

impl Pair {
    fn new(spray_ports: [u64; 2], client_is_seen_as: u16) -> Self {
        let end = |index: usize| {
            let config = Config::builder().spray_ports(spray_ports[index]).link_mbps(10_000);
            Transport::new(config.build().unwrap(), index as u16 + 1, index as u128 + 1)
        };
        let seen_as = [([10, 0, 0, 1], client_is_seen_as).into(), ([10, 0, 0, 2], 2).into()];
        let now = Instant::from_nanos(1_000_000);
        Self {
            ends: [end(0), end(1)],
            seen_as,
            now,
            sent: Vec::new(),
            datas: [0; 2],
            is_filtered: false,
        }
    }

    /// Makes a call whose request and response have [`LENGTH`] bytes. A packet of each is lost.
    fn exchange(mut self) -> Vec<Sent> {
        let payload = Payload::from(vec![7; LENGTH]);
        let to = self.seen_as[1];
        let call = Call { to, payload, cookie: 0, deadline: None, idempotent: false };
        self.ends[0].call(self.now, call).unwrap();
        for _ in 0..1_000_000 {
            self.now += Duration::from_micros(10);
            for from in [0, 1] {
                self.carry(from);
            }
            for end in 0..2 {
                self.ends[end].handle_timeout(self.now);
                while let Some(event) = self.ends[end].poll_event() {
                    match event {
                        Event::Request { rpc, payload, .. } => {
                            self.ends[end].payload_consumed(payload.len());
                            self.ends[end].reply(self.now, rpc, payload.into()).unwrap();
                        }
                        Event::Response { payload, .. } => {
                            assert_eq!(payload.len(), LENGTH);
                            return self.sent;
                        }
                        Event::Failed { .. } => panic!("the call has failed"),
                        _ => {}
                    }
                }
            }
        }
        panic!("no response after ten simulated seconds");
    }

    fn carry(&mut self, from: usize) {
        let mut wire = VecDeque::new();
        while let Some(burst) = self.ends[from].poll_transmit(self.now) {
            let payload = burst.payload().collect::<Vec<_>>().concat();
            for (index, header) in burst.headers().chunks(burst.header_len()).enumerate() {
                let start = (index * burst.segment()).min(payload.len());
                let end = (start + burst.segment()).min(payload.len());
                wire.push_back([header, &payload[start..end]].concat());
            }
        }
        for bytes in wire {
            let packet = Packet::parse(Profile::Udp, &bytes).unwrap();
            let sent = Sent::new(from == 0, &packet, &bytes);
            let is_first_data = sent.data.is_some_and(|(_, again)| !again);
            let is_dropped = self.is_filtered && sent.is_sprayed;
            self.sent.push(sent);
            self.datas[from] += usize::from(is_first_data);
            if !(is_dropped || is_first_data && self.datas[from] == LOST) {
                self.ends[1 - from]
                    .handle_datagram(self.now, Datagram::new(self.seen_as[from], &bytes));
            }
        }
    }
}

impl Sent {
    fn new(by_client: bool, packet: &Packet<'_>, bytes: &[u8]) -> Self {
        let (data, unscheduled) = match packet.body {
            Body::Data(data, _) => (Some((data.offset, data.retransmit)), data.incoming),
            _ => (None, 0),
        };
        let is_sprayed = Header::peek_sprayed(bytes).is_some();
        let is_sprayable = packet.header.states(Features::SPRAYABLE);
        let is_grant = matches!(packet.body, Body::Grant(_));
        Self { by_client, data, is_sprayed, is_sprayable, is_grant, unscheduled }
    }
}

/// Scheduled packets are sprayed if both ends are configured for it, until a retransmission of
/// their message: no unscheduled packets, and no control packets.
#[test]
fn what_leaves_by_a_grant_is_sprayed() {
    let sent = Pair::new([4, 1], 1).exchange();
    for by_client in [true, false] {
        let mine = || sent.iter().filter(|packet| packet.by_client == by_client);
        assert!(mine().filter(|packet| packet.is_grant).all(|grant| grant.is_sprayable));
        assert!(mine().filter(|packet| !packet.is_grant).all(|packet| !packet.is_sprayable));
        let first = mine().find_map(|packet| packet.data.map(|_| packet.unscheduled)).unwrap();
        let mut was_lost = false;
        for packet in mine() {
            was_lost |= packet.data.is_some_and(|(_, again)| again);
            let is_due = packet.data.is_some_and(|(offset, _)| offset >= first && !was_lost);
            assert_eq!(packet.is_sprayed, is_due, "DATA {:?}, {first} unscheduled", packet.data);
        }
        assert!(mine().filter(|packet| packet.is_sprayed).count() > 100);
        assert!(mine().any(|packet| packet.data.is_some_and(|(_, again)| again)), "one was lost");
    }
}

/// A filter that drops all of them costs each message its bytes in flight until the first
/// retransmission, once.
#[test]
fn a_filter_costs_a_message_one_resend_interval() {
    let mut pair = Pair::new([4, 4], 1);
    pair.is_filtered = true;
    let sent = pair.exchange();
    for by_client in [true, false] {
        let mine: Vec<_> = sent.iter().filter(|packet| packet.by_client == by_client).collect();
        let mine = || mine.iter();
        let dropped = mine().filter(|packet| packet.is_sprayed).count();
        let all = mine().filter(|packet| packet.data.is_some()).count();
        assert!(dropped > 0 && dropped < all / 2, "{dropped} of {all}");
        let last = mine().rposition(|packet| packet.is_sprayed).unwrap();
        let again = mine().position(|packet| packet.data.is_some_and(|(_, again)| again)).unwrap();
        assert!(last < again, "nothing is sprayed after the first packet that is sent again");
    }
}

/// An endpoint that is not configured for it behaves as before.
#[test]
fn an_end_that_is_not_set_up_prevents_it() {
    for spray_ports in [[0, 0], [4, 0], [0, 4]] {
        let sent = Pair::new(spray_ports, 1).exchange();
        assert!(sent.iter().all(|packet| !packet.is_sprayed), "{spray_ports:?}");
        for (by_client, ports) in [(true, spray_ports[0]), (false, spray_ports[1])] {
            let mut grants =
                sent.iter().filter(|sent| sent.is_grant && sent.by_client == by_client);
            assert!(grants.all(|grant| grant.is_sprayable == (ports > 0)), "{spray_ports:?}");
        }
    }
}

/// A network that translates a client's port would drop the server's packets from other ports, and
/// take the client's packets from other ports for other clients.
#[test]
fn a_peer_whose_port_is_translated_is_not_sprayed() {
    let sent = Pair::new([4, 4], 40_001).exchange();
    assert!(sent.iter().all(|packet| !packet.is_sprayed));
}
