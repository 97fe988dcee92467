//! Byte rate of UDP sockets: the upper bound for every message transport over UDP that copies its
//! bytes through a socket.
//!
//! The sender passes 44 packets at a time to the system (`UDP_SEGMENT`, 64 KiB a call), and the
//! receiver reads them in one call (`UDP_GRO`). There are no acknowledgments and no reassembly.
//! Received bytes count, not sent bytes.
//!
//! Settings, and the measured alternatives: a connected sender, and a receiver that does not
//! request addresses; the largest receive buffer that the system grants (a smaller one loses more
//! whenever the receiver is interrupted; on an idle machine it makes no difference, 64 to 69
//! Gbit/s); no window, because a sender that waits for feedback was never faster (62 to 66 Gbit/s),
//! and an idle machine loses no packets anyway.
//!
//! Spinning is not the fastest way to receive in bulk. A receiver that polls its socket only every
//! 20, 50 or 100 us carries 80, 86 or 88 Gbit/s; a spinning receiver carries 64, a sleeping
//! receiver 79. Presumably, polling an empty queue takes cache lines from the sender. This
//! contender waits like all others, for a fair comparison.

use std::mem::size_of_val;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr::from_ref;

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use rustix::net::{SendFlags, recv, send};

use super::waiter::Waiter;
use crate::contenders::contender::Contender;
use apus_measure::meter::Meter;
use apus_measure::plan::{Plan, Side};
use apus_measure::process::wake_on_stop;
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Control;

/// Bytes in one direction, at the highest possible rate.
#[derive(Clone, Copy, Debug)]
pub struct UdpGso;

/// Payload of one packet: the space in an Ethernet frame after the IPv4 and UDP headers.
const SEGMENT: usize = 1500 - 20 - 8;

/// Payload of one system call: the packets that fit into the longest datagram (65507 bytes).
const BURST: usize = 65_507 / SEGMENT * SEGMENT;

/// Room for the longest datagram.
const RECEIVE: usize = 1 << 16;

/// Requested socket buffers; the system reduces them to its own limit (`net.core.rmem_max`).
const SOCKET_BUFFER: usize = 16 << 20;

impl Contender for UdpGso {
    fn name(&self) -> &'static str {
        "udp-gso"
    }

    fn settings(&self) -> String {
        format!(
            "connected sender, UDP_SEGMENT with packets of {SEGMENT} bytes and {BURST} bytes a \
             call, UDP_GRO on receipt, largest receive buffer; nothing acknowledged, received \
             bytes count"
        )
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        let socket = open()?;
        set_udp_option(&socket, libc::UDP_GRO, 1)?;
        let address = socket.local_addr().doing(|| "find out the port".to_owned())?;
        wake_on_stop(&socket, control.stop())?;
        control.ready(address)?;
        let waiter = Waiter::new(plan.poll, control.stop());
        let mut bytes = vec![0; RECEIVE];
        let mut meter = None;
        while let Some((length, _)) = waiter
            .receive(|flags| recv(&socket, &mut bytes[..], flags))
            .doing(|| "receive".to_owned())?
        {
            let meter = meter.get_or_insert_with(|| Meter::start(plan));
            meter.count(clock::now(), 1, length as u64);
        }
        Ok(meter.map_or_else(Side::default, Meter::finish))
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        let socket = open()?;
        set_udp_option(&socket, libc::UDP_SEGMENT, SEGMENT as i32)?;
        socket.connect(server).doing(|| format!("connect to {server}"))?;
        let burst = vec![0; BURST];
        let mut meter = Meter::start(plan);
        let mut now = clock::now();
        while !meter.is_over(now) && !control.stop().is_asked() {
            let sent = send(&socket, &burst, SendFlags::empty());
            let sent = sent.doing(|| format!("send {BURST} bytes to {server}"))?;
            now = clock::now();
            meter.count(now, 1, sent as u64);
        }
        Ok(meter.finish())
    }
}

pub(super) fn open() -> Result<UdpSocket, Error> {
    let any_port = (Ipv4Addr::LOCALHOST, 0);
    let socket = UdpSocket::bind(any_port).doing(|| format!("bind {}", any_port.0))?;
    set_socket_recv_buffer_size(&socket, SOCKET_BUFFER)
        .and_then(|()| set_socket_send_buffer_size(&socket, SOCKET_BUFFER))
        .doing(|| format!("set socket buffers of {SOCKET_BUFFER} bytes"))?;
    Ok(socket)
}

/// Sets one of the two options that rustix lacks.
pub(super) fn set_udp_option(socket: &UdpSocket, option: i32, value: i32) -> Result<(), Error> {
    // SAFETY: the descriptor is open while `socket` is borrowed; the pointer and the length
    // describe `value`, which the system only reads during the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            option,
            from_ref(&value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if result == 0 {
        return Ok(());
    }
    Err(std::io::Error::last_os_error()).doing(|| format!("set the UDP option {option}"))
}
