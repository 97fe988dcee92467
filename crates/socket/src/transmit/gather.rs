//! How do large packets leave without being copied?

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use apus_driver::{BurstPackets, NetworkError, TransmitHalf};
use arrayvec::ArrayVec;

use super::{SocketTransmit, broken, refuse};
use crate::cmsg::Control;
use crate::errors;
use crate::group::{Flow, MAX_BYTES};
use crate::kernel::{self, Outgoing};
use crate::shared::BEGINNING;
use crate::submit::{Obstacle, submit};

/// Slices of one send. Ours: seven jumbo packets have 14 if each is a header and one slice of payload;
/// this leaves room for messages in many small slices, and lies on the stack.
const PIECES: usize = 128;

/// A few packets of one burst, in the engine's own memory.
struct Gathered<'a> {
    pieces: ArrayVec<IoSlice<'a>, PIECES>,
    packets: usize,
    /// Bytes of the first packet: what the kernel cuts by.
    segment: usize,
}

impl<'a> Gathered<'a> {
    /// Takes as many packets as one send may have, none if the first one has too many pieces.
    fn take(packets: &mut BurstPackets<'a>, segments: usize) -> Self {
        let mut gathered = Self { pieces: ArrayVec::new(), packets: 0, segment: 0 };
        let mut bytes = 0;
        while gathered.packets < segments {
            let before = packets.clone();
            let Some(packet) = packets.next() else { break };
            let fits = gathered.packets == 0 || bytes + packet.len() <= MAX_BYTES;
            let room = gathered.pieces.remaining_capacity();
            if !fits || packet.pieces().take(room + 1).count() > room {
                *packets = before;
                break;
            }
            gathered.pieces.extend(packet.pieces().map(IoSlice::new));
            gathered.segment = gathered.segment.max(packet.len());
            gathered.packets += 1;
            bytes += packet.len();
        }
        gathered
    }
}

impl SocketTransmit {
    /// Sends the packets of one burst at once, after everything that waits. What cannot be sent so is
    /// staged, and `flush` deals with it.
    pub(super) fn gather(&mut self, flow: &Flow, mut packets: BurstPackets<'_>) -> io::Result<()> {
        self.flush()?;
        let name =
            self.shared.carrier.name(flow.to, self.shared.family).expect("send has checked it");
        let mut control = Control::new();
        while packets.len() > 0 && !self.blocked {
            let before = packets.clone();
            let gathered = Gathered::take(&mut packets, self.abilities.segments);
            if gathered.packets == 0 {
                let packet = packets.next();
                self.stage(flow, packet.into_iter())?;
                continue;
            }
            self.reconsider_class();
            let merged = (gathered.packets > 1).then_some(gathered.segment);
            flow.control(&mut control, merged, &mut self.class);
            let message = Outgoing::new(&name, &gathered.pieces, control.as_bytes());
            let fd = self.shared.as_fd();
            let result = submit(&mut [message], |messages| kernel::send(fd, messages));
            self.count_calls(result.calls, result.look_at_errors);
            match result.obstacle {
                None => self.count_gathered(gathered.packets),
                Some(Obstacle::Full) => {
                    self.blocked = true;
                    packets = before;
                }
                Some(Obstacle::Refused(error, _))
                    if merged.is_some() && errors::blames_segmentation(error) =>
                {
                    // Staging knows how to send them in another way.
                    self.stage(flow, before)?;
                    return self.flush();
                }
                Some(Obstacle::Refused(_, trouble)) => {
                    self.refuse_gathered(flow, &gathered, trouble);
                }
                Some(Obstacle::Broken(error)) => return Err(broken(error, flow.to)),
            }
        }
        self.stage(flow, packets)
    }

    fn count_gathered(&self, packets: usize) {
        let counters = &self.shared.counters.transmit;
        counters.datagrams_sent.add(1);
        counters.packets_sent.add(packets as u64);
    }

    #[cold]
    fn refuse_gathered(&self, flow: &Flow, gathered: &Gathered<'_>, trouble: NetworkError) {
        let beginning: Vec<u8> = gathered
            .pieces
            .iter()
            .flat_map(|piece| piece.iter())
            .copied()
            .take(gathered.segment.min(BEGINNING))
            .collect();
        refuse(&self.shared, flow.to, trouble, gathered.packets, &beginning);
    }
}
