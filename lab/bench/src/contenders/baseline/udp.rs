//! Round trips of single datagrams: the lower bound for every message transport over UDP.
//!
//! Each side makes one system call to send and one to receive. Packets are as long as those of
//! apus: its DATA header and the payload.
//!
//! `udp` uses one unconnected socket with `sendmsg` and `recvmsg` and no control data, the cheapest
//! way to reach many peers. `udp-connected` uses a connected socket with `send` and `recv`, which
//! saves the route look-up and both addresses but needs a socket for each peer. Measured here, both
//! sides spinning, 156 bytes: 4.5 us unconnected, 4.1 us connected.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrAny, connect, recv,
    recvmsg, send, sendmsg_addr,
};

use super::waiter::Waiter;
use crate::contenders::contender::Contender;
use apus_measure::ping_pong::ping_pong;
use apus_measure::plan::{Plan, Side};
use apus_measure::process::wake_on_stop;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Control;

/// Datagrams, one at a time.
#[derive(Clone, Copy, Debug)]
pub struct Udp {
    /// Whether the sockets are connected to each other.
    pub connected: bool,
}

/// Bytes in front of the payload of a DATA packet of apus.
const HEADER: usize = apus_wire::DATA_HEADER_LEN;

/// Maximum payload of a UDP datagram over IPv4: 65535 less 20 and 8 bytes of headers.
const MAX_PAYLOAD: usize = 65_507;

impl Contender for Udp {
    fn name(&self) -> &'static str {
        if self.connected { "udp-connected" } else { "udp" }
    }

    fn settings(&self) -> String {
        let how = if self.connected {
            "one connected socket on each side, send and recv"
        } else {
            "one unconnected socket on each side, sendmsg and recvmsg without control data"
        };
        format!("{how}; each packet carries {HEADER} bytes more than the payload, as apus's do")
    }

    fn exclusion(&self, plan: &Plan) -> Option<String> {
        let packet = plan.size + HEADER;
        (packet > MAX_PAYLOAD).then(|| {
            format!("{packet} bytes do not fit into a datagram of at most {MAX_PAYLOAD} bytes")
        })
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        let mut side = UdpSide::open()?;
        let address = side.address()?;
        wake_on_stop(&side.socket, control.stop())?;
        control.ready(address)?;
        let waiter = Waiter::new(plan.poll, control.stop());
        let mut packet = vec![0; MAX_PAYLOAD];
        while let Some(length) = side.wait(&waiter, &mut packet)? {
            if self.connected && !side.connected {
                side.connect()?;
            }
            side.send(&packet[..length])?;
        }
        Ok(Side::default())
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        let mut side = UdpSide::open()?;
        side.peer = server.into();
        if self.connected {
            side.connect()?;
        }
        let waiter = Waiter::new(plan.poll, control.stop());
        let mut request = vec![0; plan.size + HEADER];
        let mut reply = vec![0; MAX_PAYLOAD];
        ping_pong(plan, |number| {
            request[..NUMBER].copy_from_slice(&number.to_le_bytes());
            side.send(&request)?;
            let Some(length) = side.wait(&waiter, &mut reply)? else { return Ok(false) };
            if length != request.len() || reply[..NUMBER] != request[..NUMBER] {
                return Err(Error::Peer(format!("the reply to datagram {number} is another one")));
            }
            Ok(true)
        })
    }
}

/// Length of the number at the start of a packet that identifies it.
const NUMBER: usize = size_of::<u64>();

/// Socket of one side.
struct UdpSide {
    socket: UdpSocket,
    /// Destination of packets: the sender of the last one received, if the socket is not connected.
    peer: SocketAddrAny,
    connected: bool,
}

impl UdpSide {
    fn open() -> Result<Self, Error> {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let socket = UdpSocket::bind(any_port).doing(|| format!("bind {any_port}"))?;
        Ok(Self { socket, peer: any_port.into(), connected: false })
    }

    fn address(&self) -> Result<SocketAddr, Error> {
        self.socket.local_addr().doing(|| "find out the port".to_owned())
    }

    fn connect(&mut self) -> Result<(), Error> {
        connect(&self.socket, &self.peer).doing(|| format!("connect to {:?}", self.peer))?;
        self.connected = true;
        Ok(())
    }

    #[inline]
    fn send(&self, packet: &[u8]) -> Result<(), Error> {
        let sent = if self.connected {
            send(&self.socket, packet, SendFlags::empty())
        } else {
            let no_control = &mut SendAncillaryBuffer::default();
            let packet = [IoSlice::new(packet)];
            sendmsg_addr(&self.socket, &self.peer, &packet, no_control, SendFlags::empty())
        };
        sent.doing(|| format!("send {} bytes to {:?}", packet.len(), self.peer))?;
        Ok(())
    }

    /// Waits for the next packet and returns its length; `None` once this side must stop.
    #[inline]
    fn wait(&mut self, waiter: &Waiter<'_>, packet: &mut [u8]) -> Result<Option<usize>, Error> {
        let received = waiter.receive(|flags| self.receive(packet, flags));
        received.doing(|| format!("receive from {:?}", self.peer))
    }

    #[inline]
    fn receive(&mut self, packet: &mut [u8], flags: RecvFlags) -> Result<usize, Errno> {
        if self.connected {
            return Ok(recv(&self.socket, packet, flags)?.0);
        }
        let no_control = &mut RecvAncillaryBuffer::default();
        let message = recvmsg(&self.socket, &mut [IoSliceMut::new(packet)], no_control, flags)?;
        // Only the end of the socket has no sender; it is not a datagram.
        if let Some(from) = message.address {
            self.peer = from;
        }
        Ok(message.bytes)
    }
}
