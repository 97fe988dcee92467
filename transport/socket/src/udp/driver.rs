//! The UDP driver before it is split.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use apus_driver::{Capabilities, Driver, ReceiveHalf, TransmitHalf};

use crate::carrier::Carrier;
use crate::counters::SocketCounters;
use crate::group::MAX_SEGMENTS;
use crate::link::mbps;
use crate::mtu::PacketLimit;
use crate::open::OpenError;
use crate::receive::SocketReceive;
use crate::shared::SharedSocket;
use crate::transmit::{ConnectOptions, SocketTransmit, SprayPorts, TransmitOptions};

use crate::udp::coalescing::CoalescingReceive;
use crate::udp::config::UdpConfig;
use crate::udp::features::Features;
use crate::udp::socket::{self, Opened};

/// A packet driver over one UDP socket.
#[derive(Debug)]
pub struct Udp {
    shared: Arc<SharedSocket>,
    /// The socket of bulk packets and their maximum delay, if they are separated.
    bulk: Option<(SharedSocket, Duration)>,
    local: SocketAddr,
    limit: PacketLimit,
    features: Features,
    capabilities: Capabilities,
    connect: Option<ConnectOptions>,
    spray: SprayPorts,
}

impl Udp {
    /// Opens a socket.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if the address cannot be bound, or a setting is out of range. Missing features
    /// are not an error: see [`Driver::capabilities`].
    pub fn open(config: &UdpConfig) -> Result<Self, OpenError> {
        let opened = socket::open(config)?;
        let max_delay = Duration::from_micros(config.receive_coalescing_usecs.into());
        let bulk = (!max_delay.is_zero()).then(|| socket::open_bulk(&opened, config)).flatten();
        let mut udp = Self::new(opened, config);
        udp.bulk = bulk.map(|Opened { socket, family, .. }| {
            let shared = SharedSocket::new(socket, family, Carrier::Udp).counting_with(&udp.shared);
            (shared, max_delay)
        });
        Ok(udp)
    }

    /// Opens `count` sockets at one address: the system delivers each packet to one of them, by the
    /// sender's address and port. All packets of one sender arrive at the same socket, and packets
    /// from adjacent ports of one address at different sockets.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if the address cannot be bound, for example because another socket has it, or
    /// a setting is out of range.
    pub fn open_group(config: &UdpConfig, count: usize) -> Result<Vec<Self>, OpenError> {
        if count <= 1 {
            return Ok(vec![Self::open(config)?]);
        }
        let group = socket::open_group(config, count)?;
        Ok(group.into_iter().map(|opened| Self::new(opened, config)).collect())
    }

    fn new(opened: Opened, config: &UdpConfig) -> Self {
        let features = opened.features;
        let spray_ports = if opened.finds_sprayed { config.spray_ports } else { 0 };
        let spray = SprayPorts::open(spray_ports, opened.local, config.send_buffer);
        let capabilities = Capabilities {
            segments_per_send: if features.segmentation { MAX_SEGMENTS } else { 1 },
            receive_offload: features.merging,
            priorities: features.priorities,
            ecn: features.ecn,
            reports: features.reports,
            busy_poll_usecs: features.busy_poll_usecs,
            receive_buffer: opened.receive_buffer,
            link_mbps: mbps(opened.local.ip()),
            spray_ports: spray.count(),
        };
        Self {
            shared: Arc::new(SharedSocket::new(opened.socket, opened.family, Carrier::Udp)),
            bulk: None,
            local: opened.local,
            limit: PacketLimit::new(config.max_ip_packet, Carrier::Udp),
            features,
            capabilities,
            connect: (config.connect_after > 0).then_some(ConnectOptions {
                after: config.connect_after,
                local: opened.local,
                send_buffer: config.send_buffer,
                reports: features.reports,
            }),
            spray,
        }
    }

    /// Returns the driver's counters, which stay valid after [`Driver::split`].
    #[must_use]
    pub fn counters(&self) -> Arc<SocketCounters> {
        self.shared.counters()
    }
}

impl Driver for Udp {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn counters(&self) -> Option<Arc<dyn apus_driver::DriverCounters>> {
        Some(self.shared.counters())
    }

    fn split(self: Box<Self>) -> (Box<dyn TransmitHalf>, Box<dyn ReceiveHalf>) {
        let options = TransmitOptions {
            segments: self.capabilities.segments_per_send,
            priorities: self.features.priorities,
            chooses_source: self.features.destination,
        };
        let transmit =
            SocketTransmit::new(self.shared.clone(), self.limit, options).connecting(self.connect);
        let takes_sprayed = self.spray.count() > 0;
        let transmit = transmit.spraying(self.spray);
        let receive = SocketReceive::new(self.shared, self.features.merging);
        let receive = receive.taking_sprayed(takes_sprayed);
        let Some((shared, max_delay)) = self.bulk else {
            return (Box::new(transmit), Box::new(receive));
        };
        let bulk = SocketReceive::new(Arc::new(shared), self.features.merging);
        let bulk = bulk.taking_sprayed(takes_sprayed);
        (Box::new(transmit), Box::new(CoalescingReceive::new(receive, bulk, max_delay)))
    }
}
