//! Requests a second, with batches and one by one, in turns.

use crate::client::Client;
use crate::{Arguments, Service, connections, router, service};
use diptych::{Context, Model};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

struct Server {
    what: String,
    service: Arc<Service>,
    address: SocketAddr,
    /// Requests a second of each round, and all latencies.
    rates: Vec<f64>,
    latencies: Vec<Duration>,
}

impl Server {
    async fn start(what: String, service: Arc<Service>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let router = router(Arc::clone(&service));
        let limits = service.limits;
        tokio::spawn(
            async move { connections::serve(listener, router, limits, std::future::pending()).await },
        );
        Ok(Server { what, service, address, rates: Vec::new(), latencies: Vec::new() })
    }

    /// Clients that ask again and again for so long.
    async fn round(&mut self, clients: usize, time: Duration, keep: bool) -> anyhow::Result<()> {
        let elements = self.service.pool.batch().inputs().iter().map(|port| port.dims.elements()).sum();
        let (address, start) = (self.address, Instant::now());
        let mut tasks: JoinSet<anyhow::Result<Vec<Duration>>> = JoinSet::new();
        for client in 0..clients {
            let value = |element: usize| ((element * 7 + client * 13) % 256) as f32 / 127.5 - 1.0;
            let body: Vec<u8> = (0..elements).flat_map(|element| value(element).to_le_bytes()).collect();
            tasks.spawn(async move {
                let mut connection = Client::connect(address).await?;
                let mut latencies = Vec::new();
                while start.elapsed() < time {
                    let begin = Instant::now();
                    connection.post("/run", &body).await?;
                    latencies.push(begin.elapsed());
                }
                Ok(latencies)
            });
        }
        let mut all = Vec::new();
        while let Some(latencies) = tasks.join_next().await {
            all.extend(latencies??);
        }
        if keep {
            self.rates.push(all.len() as f64 / start.elapsed().as_secs_f64());
            self.latencies.extend(all);
        }
        Ok(())
    }

    fn print(&mut self) {
        self.rates.sort_by(f64::total_cmp);
        self.latencies.sort_unstable();
        let at = |share: f64| {
            let place = (self.latencies.len() as f64 * share) as usize;
            self.latencies.get(place).map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
        };
        println!(
            "{}: {:.0} requests a second ({:.0} to {:.0}), latency median {:.2} ms, p99 {:.2} ms; runs of 1, 2, ... requests: {:?}",
            self.what,
            self.rates[self.rates.len() / 2],
            self.rates[0],
            self.rates[self.rates.len() - 1],
            at(0.5),
            at(0.99),
            self.service.pool.batch().counts().runs,
        );
    }
}

pub(crate) async fn measure(
    arguments: &Arguments,
    contexts: &[Context],
    model: &Model,
) -> anyhow::Result<()> {
    let (rounds, clients) = (arguments.rounds.max(1), arguments.clients.max(1));
    let time = Duration::from_secs_f64(arguments.seconds);
    let mut servers = Vec::new();
    for most in [arguments.batch, 1] {
        let what = if most == 1 { "one by one".to_owned() } else { format!("batches of {most} at most") };
        servers.push(Server::start(what, service(arguments, contexts, model, most)?).await?);
    }
    println!(
        "{clients} clients over HTTP, {rounds} rounds of {time:?} in turns, after one that does not count"
    );
    for round in 0..=rounds {
        for server in &mut servers {
            server.round(clients, time, round > 0).await?;
        }
    }
    servers.iter_mut().for_each(Server::print);
    let median = |server: &Server| server.rates[server.rates.len() / 2];
    println!("ratio {:.2}", median(&servers[0]) / median(&servers[1]));
    Ok(())
}
