//! Clients of several servers: names, balancing, retries, hedging. docs/rpc/clients.md shows the
//! parts.
//!
//! ```sh
//! cargo run -p apus-rpc --example several
//! ```

use std::net::SocketAddr;

#[apus_rpc::service]
trait Orders {
    #[idempotent]
    async fn find(&self, number: u32) -> String;
}

struct Shop;

impl Orders for Shop {
    async fn find(&self, number: u32) -> String {
        format!("order {number}")
    }
}

// [sample client]
use apus_rpc::apus::tokio::Endpoint;
use apus_rpc::layers::{Hedge, Retry};
use apus_rpc::{Balance, names};
use std::path::Path;
use std::time::Duration;

async fn find(servers: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let endpoint = Endpoint::client().await?;
    // One `address:port` a line, read again every second.
    let servers = names::file(servers, Duration::from_secs(1))?;
    let service = Retry::new(Hedge::new(Balance::new(endpoint, servers)));
    // A typed service; a generated client of tonic is
    // `GreeterClient::new(apus_tonic::Channel::new(service.clone()))`.
    let orders = OrdersClient::new(service).with_timeout(Duration::from_secs(10));
    Ok(orders.find(7).await?)
}
// [end]

// [sample server]
use apus_rpc::{BindError, Server, ServerControl};

/// Serves until `shut_down` is ready, then drains: no call is lost.
async fn serve(
    address: &str,
    shut_down: impl Future<Output = ()> + Send + 'static,
) -> Result<SocketAddr, BindError> {
    let endpoint = Endpoint::bind(address.to_owned()).await?;
    let address = endpoint.local_addr();
    let server = Server::new(endpoint.clone()).add_service(OrdersServer::new(Shop));
    let (control, serving) = server.start();
    tokio::spawn(serving);
    tokio::spawn(async move {
        shut_down.await;
        ServerControl::drain(&control, Duration::from_secs(30)).await;
        endpoint.shutdown();
    });
    Ok(address)
}
// [end]

/// Runs two servers and a client that survives the end of one of them.
///
/// # Errors
///
/// A call failed.
#[tokio::main]
pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("apus-several-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("servers");
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let first = serve("127.0.0.1:0", async { drop(ended.await) }).await?;
    let second = serve("127.0.0.1:0", std::future::pending()).await?;
    std::fs::write(&file, format!("{first}\n{second}\n"))?;
    println!("{}", find(&file).await?);
    drop(end);
    println!("{}", find(&file).await?);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
