//! Sending large packets from the engine's slices, without a copy.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use apus_driver::{BurstPackets, NetworkError, TransmitHalf};
use arrayvec::ArrayVec;

use super::{SocketTransmit, broken, refuse};
use crate::cmsg::Control;
use crate::errors;
use crate::group::{Flow, MAX_BYTES};
use crate::kernel::{self, OutgoingDatagram};
use crate::shared::BEGINNING;
use crate::submit::{Obstacle, submit};

/// Slices of one send. Chosen by us: seven jumbo packets have 14 if each is a header and one slice
/// of payload. This leaves room for messages in many small slices, and fits on the stack.
const PIECES: usize = 128;

/// Packets of one burst, in the engine's memory.
struct Gathered<'a> {
    pieces: ArrayVec<IoSlice<'a>, PIECES>,
    packets: usize,
    /// Bytes of the first packet: the kernel's segment size.
    segment: usize,
}

impl<'a> Gathered<'a> {
    /// Gathers as many packets as fit in one send; none if the first one has too many pieces.
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
    /// Sends the packets of one burst at once, after all staged packets. Packets that cannot be
    /// sent this way are staged, and `flush` handles them.
    pub(super) fn gather(&mut self, flow: &Flow, mut packets: BurstPackets<'_>) -> io::Result<()> {
        self.flush()?;
        let mut flow = *flow;
        let name =
            self.shared.carrier.name(flow.to, self.shared.family).expect("checked by `send`");
        let mut control = Control::new();
        while packets.len() > 0 && !self.blocked {
            let before = packets.clone();
            let gathered = Gathered::take(&mut packets, self.options.segments);
            if gathered.packets == 0 {
                let packet = packets.next();
                self.stage(&flow, packet.into_iter(), 0)?;
                continue;
            }
            let merged = (gathered.packets > 1).then_some(gathered.segment);
            if flow.port != 0 {
                let counters = &self.shared.counters.transmit;
                self.spray.control(&flow, &mut control, merged, counters);
                let message = OutgoingDatagram::new(&name, &gathered.pieces, control.as_bytes());
                if self.spray.send(flow.port, message, counters) {
                    self.count_gathered(gathered.packets);
                    continue;
                }
                flow.port = 0; // SPRAY-1
            }
            self.update_class();
            flow.control(&mut control, merged, &mut self.class);
            let message = OutgoingDatagram::new(&name, &gathered.pieces, control.as_bytes());
            let fd = self.shared.as_fd();
            let result =
                submit(&mut [message], &mut self.many, |messages| kernel::send(fd, messages));
            self.count_calls(&result);
            match result.obstacle {
                None => self.count_gathered(gathered.packets),
                Some(Obstacle::Full) => {
                    self.blocked = true;
                    packets = before;
                }
                Some(Obstacle::Refused(error, _) | Obstacle::Broken(error))
                    if merged.is_some() && errors::may_be_segmentation(error) =>
                {
                    // `flush` can send them one by one.
                    self.stage(&flow, before, 0)?;
                    return self.flush();
                }
                Some(Obstacle::Refused(_, cause)) => {
                    self.refuse_gathered(&flow, &gathered, cause);
                }
                Some(Obstacle::Broken(error)) => return Err(broken(error, flow.to)),
            }
        }
        self.stage(&flow, packets, 0)
    }

    fn count_gathered(&self, packets: usize) {
        let counters = &self.shared.counters.transmit;
        counters.datagrams_sent.add(1);
        counters.packets_sent.add(packets as u64);
    }

    #[cold]
    fn refuse_gathered(&self, flow: &Flow, gathered: &Gathered<'_>, cause: NetworkError) {
        let beginning: Vec<u8> = gathered
            .pieces
            .iter()
            .flat_map(|piece| piece.iter())
            .copied()
            .take(gathered.segment.min(BEGINNING))
            .collect();
        refuse(&self.shared, flow.to, cause, gathered.packets, &beginning);
    }
}
