//! iceoryx2: requests and responses in shared memory, and events that wake a side that sleeps.

use std::collections::VecDeque;
use std::mem::take;
use std::process::ExitCode;
use std::time::Duration;

use compare_kit::{
    Class, Client, Connection, Connector, Description, Error, MAX_LENGTH, Peer, Server, Wait,
    Waits, answer, connections, free_address, name_of, run,
};
use iceoryx2::pending_response::PendingResponse;
use iceoryx2::port::client::Client as ClientPort;
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::request_response::PortFactory;

const OUTSTANDING: usize = 64;
/// Maximum sleep of a server between checks of the stop request.
const CYCLE: Duration = Duration::from_millis(50);

struct Iceoryx2;

impl Peer for Iceoryx2 {
    fn describe() -> Description {
        Description {
            name: "iceoryx2".to_owned(),
            package: Some("iceoryx2".to_owned()),
            settings: "request-response of byte slices; an event for each side that sleeps, sent when it has no more to do".to_owned(),
            advice: "its examples write messages in place, and wait for events".to_owned(),
            waits: Waits::Both,
            longest: Some(MAX_LENGTH),
            is_node: false,
            grows: false,
            class: Class::SameHost,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let address = free_address(server.bind)?;
        let (node, name) = (NodeBuilder::new().create::<ipc::Service>()?, name_of(address));
        let port =
            open(&node, &name)?.server_builder().initial_max_slice_len(MAX_LENGTH).create()?;
        let mut doorbell = Doorbell::new(&node, &name, ["server", "client"], server.wait)?;
        server.ready(address)?;
        while !server.stop().is_asked() {
            let Some(request) = port.receive()? else {
                doorbell.wait()?;
                continue;
            };
            let receipt = answer(request.payload());
            let reply = receipt.as_ref().map_or(request.payload(), |receipt| &receipt[..]);
            request.loan_slice_uninit(reply.len())?.write_from_slice(reply).send()?;
            doorbell.is_due = true;
        }
        Ok(())
    }

    fn client(client: &Client) -> Result<Box<dyn Connector>, Error> {
        let (size, wait) = (client.work.size(), client.wait);
        Ok(connections(move |server| {
            let (node, name) = (NodeBuilder::new().create::<ipc::Service>()?, name_of(server));
            let port = open(&node, &name)?.client_builder().initial_max_slice_len(size).create()?;
            let doorbell = Doorbell::new(&node, &name, ["client", "server"], wait)?;
            Ok(Calls { port, doorbell, pending: VecDeque::new() })
        }))
    }
}

type Service = PortFactory<ipc::Service, [u8], (), [u8], ()>;

/// Opens the service of a server.
fn open(node: &Node<ipc::Service>, name: &str) -> Result<Service, Error> {
    let service = node.service_builder(&name.try_into()?).request_response::<[u8], [u8]>();
    Ok(service.max_active_requests_per_client(OUTSTANDING).open_or_create()?)
}

/// Wakes the other side, and is woken by it.
struct Doorbell {
    listener: Listener<ipc::Service>,
    notifier: Notifier<ipc::Service>,
    wait: Wait,
    /// Whether messages were sent without notifying the other side yet.
    is_due: bool,
}

impl Doorbell {
    fn new(
        node: &Node<ipc::Service>,
        name: &str,
        [own, other]: [&str; 2],
        wait: Wait,
    ) -> Result<Self, Error> {
        let event = |side| -> Result<_, Error> {
            let name = format!("{name}-{side}");
            Ok(node.service_builder(&name.as_str().try_into()?).event().open_or_create()?)
        };
        let listener = event(own)?.listener_builder().create()?;
        let notifier = event(other)?.notifier_builder().create()?;
        Ok(Self { listener, notifier, wait, is_due: false })
    }

    /// Waits until the other side may have sent something, and notifies it before that.
    fn wait(&mut self) -> Result<(), Error> {
        if self.wait == Wait::Spin {
            std::hint::spin_loop();
            return Ok(());
        }
        if take(&mut self.is_due) {
            self.notifier.notify()?;
        }
        self.listener.timed_wait(|_| {}, CYCLE)?;
        Ok(())
    }
}

type Pending = PendingResponse<ipc::Service, [u8], (), [u8], ()>;

/// Calls of a client. A server answers them in their order.
struct Calls {
    port: ClientPort<ipc::Service, [u8], (), [u8], ()>,
    doorbell: Doorbell,
    pending: VecDeque<Pending>,
}

impl Connection for Calls {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        let loaned = self.port.loan_slice_uninit(request.len())?;
        self.pending.push_back(loaned.write_from_slice(request).send()?);
        self.doorbell.is_due = true;
        Ok(())
    }

    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error> {
        loop {
            let first = self.pending.front().ok_or("no request is outstanding")?;
            if let Some(response) = first.receive()? {
                reply.extend_from_slice(response.payload());
                self.pending.pop_front();
                return Ok(());
            }
            self.doorbell.wait()?;
        }
    }
}

fn main() -> ExitCode {
    run::<Iceoryx2>()
}
