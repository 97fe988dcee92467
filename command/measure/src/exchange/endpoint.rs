//! Opens endpoints that shut down when their side receives a stop request.

use std::net::{Ipv4Addr, SocketAddr};

use apus::{Endpoint, EndpointBuilder};

use crate::error::Error;
use crate::process::Control;

/// Opens a server, reports that clients may connect, and shuts the server down when its side
/// receives a stop request.
pub fn serve_at(settings: EndpointBuilder, control: &mut Control) -> Result<Endpoint, Error> {
    let endpoint = open(settings)?;
    shut_down_on_stop(&endpoint, control);
    control.ready(endpoint.local_addr())?;
    Ok(endpoint)
}

/// Opens a client that shuts down when its side receives a stop request.
pub fn open_client(settings: EndpointBuilder, control: &Control) -> Result<Endpoint, Error> {
    let endpoint = open(settings.serve(false))?;
    shut_down_on_stop(&endpoint, control);
    Ok(endpoint)
}

/// Opens an endpoint at any free port of this host.
pub fn open(settings: EndpointBuilder) -> Result<Endpoint, Error> {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    settings
        .bind(any_port)
        .map_err(|error| Error::endpoint(format!("open an endpoint at {any_port}"), error))
}

/// Shuts an endpoint down when its side receives a stop request.
pub fn shut_down_on_stop(endpoint: &Endpoint, control: &Control) {
    let endpoint = endpoint.clone();
    control.stop().wake_with(move || endpoint.shutdown());
}
