//! Sockets for this crate's unit tests.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use socket2::{Domain, Protocol, Socket, Type};

use crate::address::Family;
use crate::carrier::Carrier;
use crate::kernel::set_option;
use crate::shared::SharedSocket;

/// Opens a UDP socket at any free port of the loopback device, with all offloads.
pub(crate) fn open() -> (Arc<SharedSocket>, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking(), Some(Protocol::UDP)).unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(&any.into()).unwrap();
    set_option(socket.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1).unwrap();
    set_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_RECVERR, 1).unwrap();
    crate::open::size_buffers(&socket, 1 << 20, 1 << 20);
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    (Arc::new(SharedSocket::new(socket, Family::V4, Carrier::Udp)), address)
}
