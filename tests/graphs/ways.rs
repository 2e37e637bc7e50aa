//! The ways in which a session runs: where a thread may block, and where it may not.

use diptych::{Context, Graph, HostTensor, Result, Session, SessionOptions};

/// What a session is given in a run, and what it gave.
pub(crate) type Done<'a> = (&'a [(&'a str, &'a HostTensor)], Vec<Vec<f32>>);

/// Whether outputs are the same to the bit as those of an earlier run.
///
/// # Errors
/// Which is not.
fn same(way: &str, run: usize, found: &[Vec<f32>], wanted: &[Vec<f32>]) -> std::result::Result<(), String> {
    let bits = |rows: &[Vec<f32>]| -> Vec<Vec<u32>> {
        let one = |row: &Vec<f32>| {
            row.iter().map(|value| if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() }).collect()
        };
        rows.iter().map(one).collect()
    };
    let (found, wanted) = (bits(found), bits(wanted));
    let place = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted);
    let text = |place| format!("run {run} {way}: output {place} is not what it was");
    place.map_or(Ok(()), |place| Err(text(place)))
}

#[cfg(not(target_family = "wasm"))]
pub(crate) use blocking::{others, run, session};

#[cfg(target_family = "wasm")]
pub(crate) use awaited::{others, run, session};

#[cfg(not(target_family = "wasm"))]
mod blocking {
    use super::*;

    pub(crate) async fn session(
        context: &Context,
        graph: &Graph,
        options: SessionOptions,
    ) -> Result<Session> {
        Session::new(context, graph, options)
    }

    pub(crate) async fn run(session: &mut Session, given: &[(&str, &HostTensor)]) -> Result<Vec<HostTensor>> {
        session.run(given)
    }

    /// Repeats the runs in `done`, streamed and on slices, and checks that they give the same to the bit.
    pub(crate) async fn others(
        _: &Context,
        session: &mut Session,
        done: &[Done<'_>],
    ) -> Result<std::result::Result<(), String>> {
        session.reset()?;
        let frames: Vec<Vec<(String, HostTensor)>> = done
            .iter()
            .map(|(given, _)| {
                given.iter().map(|(name, tensor)| ((*name).to_owned(), (*tensor).clone())).collect()
            })
            .collect();
        for (run, outputs) in session.stream(frames).enumerate() {
            let rows: Vec<Vec<f32>> = outputs?.iter().map(|output| output.to_f32().into_owned()).collect();
            if let Err(failure) = same("streamed", run, &rows, &done[run].1) {
                return Ok(Err(failure));
            }
        }
        session.reset()?;
        let names: Vec<String> = session.outputs().iter().map(|port| port.name.clone()).collect();
        for (run, (given, wanted)) in done.iter().enumerate() {
            let rows: Vec<_> = given.iter().map(|(name, tensor)| (*name, tensor.to_nhwc())).collect();
            let slices: Vec<(&str, &[f32])> = rows.iter().map(|(name, values)| (*name, &**values)).collect();
            let mut found: Vec<Vec<f32>> = wanted.iter().map(|row| vec![f32::NAN; row.len()]).collect();
            let mut targets: Vec<(&str, &mut [f32])> =
                names.iter().zip(&mut found).map(|(name, row)| (name.as_str(), row.as_mut_slice())).collect();
            session.run_slices(&slices, &mut targets)?;
            if let Err(failure) = same("on slices", run, &found, wanted) {
                return Ok(Err(failure));
            }
        }
        Ok(Ok(()))
    }
}

#[cfg(target_family = "wasm")]
mod awaited {
    use super::*;
    use diptych::{Error, wgpu};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::task::{Poll, Waker};

    pub(crate) async fn session(
        context: &Context,
        graph: &Graph,
        options: SessionOptions,
    ) -> Result<Session> {
        Session::new_async(context, graph, options).await
    }

    pub(crate) async fn run(session: &mut Session, given: &[(&str, &HostTensor)]) -> Result<Vec<HostTensor>> {
        session.run_async(given).await
    }

    /// Repeats the runs in `done` on buffers of the application's where the CPU computes no node, and checks that they give the
    /// same to the bit.
    pub(crate) async fn others(
        context: &Context,
        session: &mut Session,
        done: &[Done<'_>],
    ) -> Result<std::result::Result<(), String>> {
        let Some((device, queue)) = context.wgpu() else { return Ok(Ok(())) };
        session.reset()?;
        let names: Vec<String> = session.outputs().iter().map(|port| port.name.clone()).collect();
        for (run, (given, wanted)) in done.iter().enumerate() {
            let buffer = |elements: usize| {
                device.create_buffer(&wgpu::BufferDescriptor {
                    label: None,
                    size: 4 * elements as u64,
                    usage: wgpu::BufferUsages::STORAGE
                        | wgpu::BufferUsages::COPY_SRC
                        | wgpu::BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                })
            };
            let mut sources = Vec::new();
            for (_, tensor) in *given {
                let rows = tensor.to_nhwc();
                let source = buffer(rows.len());
                queue.write_buffer(&source, 0, bytemuck::cast_slice(&rows));
                sources.push(source);
            }
            let targets: Vec<wgpu::Buffer> = wanted.iter().map(|row| buffer(row.len())).collect();
            let inputs: Vec<(&str, &wgpu::Buffer)> =
                given.iter().map(|(name, _)| *name).zip(&sources).collect();
            let outputs: Vec<(&str, &wgpu::Buffer)> =
                names.iter().map(String::as_str).zip(&targets).collect();
            match session.bind(&inputs, &outputs).await {
                Err(Error::Unsupported { .. }) => return Ok(Ok(())),
                bound => bound?,
            }
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            session.encode(&mut encoder, &inputs, &outputs)?;
            queue.submit([encoder.finish()]);
            let mut found = Vec::new();
            for target in &targets {
                found.push(read(device, queue, target).await?);
            }
            if let Err(failure) = same("on buffers", run, &found, wanted) {
                return Ok(Err(failure));
            }
        }
        Ok(Ok(()))
    }

    /// The values of a buffer.
    async fn read(device: &wgpu::Device, queue: &wgpu::Queue, source: &wgpu::Buffer) -> Result<Vec<f32>> {
        let mapped = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: source.size(),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(source, 0, &mapped, 0, source.size());
        queue.submit([encoder.finish()]);
        let failed = |error: String| Error::Internal(format!("a buffer is not read: {error}"));
        let told = Arc::new(Mutex::new((None, None::<Waker>)));
        let teller = Arc::clone(&told);
        mapped.slice(..).map_async(wgpu::MapMode::Read, move |result| {
            let mut told = teller.lock().unwrap_or_else(PoisonError::into_inner);
            told.0 = Some(result);
            told.1.take().into_iter().for_each(Waker::wake);
        });
        let result = std::future::poll_fn(|task| {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.1 = Some(task.waker().clone());
            told.0.take().map_or(Poll::Pending, Poll::Ready)
        });
        result.await.map_err(|error| failed(error.to_string()))?;
        let view = mapped.slice(..).get_mapped_range().map_err(|error| failed(error.to_string()))?;
        Ok(bytemuck::pod_collect_to_vec(&view))
    }
}
