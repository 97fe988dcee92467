//! A typed service, its server, and its clients. docs/rpc/services.md shows the parts.
//!
//! ```sh
//! cargo run -p apus-rpc --example greeter
//! ```

// [sample service]
use apus_rpc::apus::tokio::Endpoint;
use apus_rpc::{BindError, Server, Streaming};
use std::net::SocketAddr;

#[apus_rpc::service]
trait Greeter {
    #[idempotent]
    async fn greet(&self, name: String) -> String;
    async fn count(&self, to: u32) -> Streaming<u32>;
    async fn sum(&self, numbers: Streaming<u32>) -> Result<u32, String>;
}

struct English;

impl Greeter for English {
    async fn greet(&self, name: String) -> String {
        format!("Hello, {name}!")
    }

    async fn count(&self, to: u32) -> Streaming<u32> {
        let (sender, numbers) = Streaming::channel(16);
        tokio::spawn(async move {
            for number in 1..=to {
                // Waits while the client reads slowly; fails if it has gone.
                if sender.send(number).await.is_err() {
                    break;
                }
            }
        });
        numbers
    }

    async fn sum(&self, mut numbers: Streaming<u32>) -> Result<u32, String> {
        let mut sum: u32 = 0;
        while let Some(number) = numbers.next().await {
            let number = number.map_err(|status| status.to_string())?;
            sum = sum.checked_add(number).ok_or("the sum is too large")?;
        }
        Ok(sum)
    }
}

async fn start() -> Result<SocketAddr, BindError> {
    let endpoint = Endpoint::bind("127.0.0.1:0").await?;
    let address = endpoint.local_addr();
    tokio::spawn(Server::new(endpoint).add_service(GreeterServer::new(English)).serve());
    Ok(address)
}
// [end]

// [sample client]
use apus_rpc::{Channel, Code, Execution, ServiceError};
use std::error::Error;
use std::time::Duration;

async fn call(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let client = GreeterClient::new(Channel::connect(address).await?);
    assert_eq!(client.greet("World".into()).await?, "Hello, World!");

    // A stream that is read, and one that is written.
    let mut numbers = client.count(3).await?;
    while let Some(number) = numbers.next().await {
        println!("{}", number?);
    }
    match client.sum(Streaming::from_items([1, 2, 3])).await {
        Ok(sum) => println!("the sum is {sum}"),
        Err(ServiceError::Method(why)) => println!("the method's own error: {why}"),
        Err(ServiceError::Status(status)) => return Err(status.into()),
    }

    // A deadline: it ends the handler as well, and the calls that the handler makes.
    let hasty = client.with_timeout(Duration::from_secs(5));
    match hasty.greet("World".into()).await {
        Ok(greeting) => println!("{greeting}"),
        Err(status) if status.code() == Code::DeadlineExceeded => println!("too late: {status}"),
        Err(status) if status.execution() == Execution::NotExecuted => {
            println!("another server may be asked: {status}");
        }
        Err(status) => return Err(status.into()),
    }
    Ok(())
}
// [end]

// [sample blocking]
use apus_rpc::BlockingChannel;

fn call_from_a_thread(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let client = GreeterBlockingClient::new(BlockingChannel::connect(address)?);
    assert_eq!(client.greet("thread".into())?, "Hello, thread!");
    Ok(())
}
// [end]

/// Runs the server and its clients.
///
/// # Errors
///
/// A call failed.
#[tokio::main]
pub async fn main() -> Result<(), Box<dyn Error>> {
    let address = start().await?;
    call(address).await?;
    let called = tokio::task::spawn_blocking(move || {
        call_from_a_thread(address).map_err(|error| error.to_string())
    });
    called.await??;
    Ok(())
}
