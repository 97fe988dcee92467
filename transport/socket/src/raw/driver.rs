//! The raw IP driver before it is split.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::carrier::Carrier;
use crate::counters::SocketCounters;
use crate::link::mbps;
use crate::mtu::PacketLimit;
use crate::receive::SocketReceive;
use crate::shared::SharedSocket;
use crate::transmit::{SocketTransmit, TransmitOptions};
use apus_driver::{Capabilities, Driver, ReceiveHalf, TransmitHalf};

use crate::raw::config::RawConfig;
use crate::raw::error::RawOpenError;
use crate::raw::socket::{self, Opened};

/// A packet driver over one raw IP socket.
///
/// ```no_run
/// use apus_driver::Driver;
/// use apus_socket::{Raw, RawConfig};
///
/// let driver = Raw::open(&RawConfig::bound_to(([10, 0, 0, 1], 4000).into()))?;
/// assert_eq!(driver.local_addr().port(), 4000);
/// assert_eq!(driver.first_id() % 2, 0);
/// # Ok::<(), apus_socket::RawOpenError>(())
/// ```
#[derive(Debug)]
pub struct Raw {
    shared: Arc<SharedSocket>,
    local: SocketAddr,
    first_id: u64,
    limit: PacketLimit,
    options: TransmitOptions,
    capabilities: Capabilities,
}

impl Raw {
    /// Opens a socket, and reserves a port and a range of ids.
    ///
    /// # Errors
    ///
    /// [`RawOpenError`] if the process lacks CAP_NET_RAW, the port is in use, the address does not
    /// belong to this host, or a setting is out of range.
    pub fn open(config: &RawConfig) -> Result<Self, RawOpenError> {
        let opened = socket::open(config)?;
        let Opened { socket, family, local, any, ids, port, .. } = opened;
        let carrier = Carrier::Ip { port: Some(port.number), any };
        let first_id = ids.first;
        let capabilities = Capabilities {
            segments_per_send: 1,
            receive_offload: false,
            priorities: opened.priorities,
            ecn: opened.ecn,
            reports: opened.reports,
            busy_poll_usecs: 0,
            receive_buffer: opened.receive_buffer,
            link_mbps: mbps(local.ip()),
            spray_ports: 0,
        };
        let options =
            TransmitOptions { segments: 1, priorities: opened.priorities, chooses_source: any };
        Ok(Self {
            shared: Arc::new(SharedSocket::new(socket, family, carrier).owning((port, ids))),
            local,
            first_id,
            limit: PacketLimit::new(config.max_ip_packet, carrier),
            options,
            capabilities,
        })
    }

    /// Returns the first RPC id for an endpoint on this driver, which increments its ids by two. No
    /// other endpoint of this host uses these ids while the driver or one of its halves lives, and
    /// none has used them before.
    #[must_use]
    pub const fn first_id(&self) -> u64 {
        self.first_id
    }

    /// Returns the driver's counters, which stay valid after [`Driver::split`].
    #[must_use]
    pub fn counters(&self) -> Arc<SocketCounters> {
        self.shared.counters()
    }
}

impl Driver for Raw {
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
        let transmit = SocketTransmit::new(self.shared.clone(), self.limit, self.options);
        let receive = SocketReceive::new(self.shared, false);
        (Box::new(transmit), Box::new(receive))
    }
}
