//! What an application does with a device, from its opening to its end, over and over: at each error once more.

use crate::driver::Driver;
use diptych::internals::pick::Place;
use diptych::{
    Activation, Backend, Batch, BatchOptions, Context, Conv2d, Error, Extras, Function, Gemm, Graph,
    HostTensor, Layout, MatrixProduct, Memory, Padding, Picking, Precision, ProductOptions, Reduction,
    Session, SessionOptions, Shape, Tuner,
};
use diptych_emit::emit::Operand;
use diptych_kernels::ops::gemm::GemmOp;

use std::path::Path;
use std::time::Duration;

const IMAGE: Shape = Shape::nhwc(1, 9, 7, 3);

/// Values of both signs.
fn pattern(shape: Shape, seed: usize) -> HostTensor {
    let values: Vec<f32> =
        (0..shape.elements()).map(|at| ((at * 31 + seed * 17) % 23) as f32 / 23.0 - 0.4).collect();
    HostTensor::new(shape, values).expect("a tensor")
}

/// A convolution, a sum of two functions of it, a mean: several kernels, two outputs.
fn network() -> Graph {
    let mut graph = Graph::new();
    let x = graph.input("x", IMAGE).expect("an input");
    let options = Conv2d { padding: Padding::Same, activation: Activation::Relu6, ..Conv2d::default() };
    let weights = pattern(Shape::nhwc(8, 3, 3, 3), 1);
    let map = graph.conv2d("map", x, weights, Extras::default(), options).expect("a convolution");
    let exp = graph.elementwise("exp", Function::Exp, &[map.into()]).expect("a function");
    let sum = graph.elementwise("sum", Function::Add, &[exp.into(), map.into()]).expect("a sum");
    let mean = graph.reduce("mean", sum, Reduction::Mean, &[1, 2], true).expect("a mean");
    graph.output(map).expect("an output");
    graph.output(mean).expect("an output");
    graph
}

/// An error that an application met.
#[derive(Debug)]
pub(crate) struct Met {
    /// What it was doing.
    pub(crate) stage: &'static str,
    pub(crate) error: Error,
}

/// The bits of each result, in the order of the stages.
pub(crate) type Results = Vec<(&'static str, Vec<u32>)>;

pub(crate) struct Life<'a> {
    driver: &'a Driver,
    open: &'a Open<'a>,
    pub(crate) met: Vec<Met>,
    pub(crate) results: Results,
}

/// Why a stage cannot be done again where it failed.
struct Lost;

fn bits<'a>(outputs: impl IntoIterator<Item = &'a HostTensor>) -> Vec<u32> {
    let values = outputs.into_iter().map(HostTensor::to_nhwc);
    values.flat_map(|values| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>()).collect()
}

/// How a device is opened, with its kernels kept in a folder if one is given.
pub(crate) type Open<'a> = dyn Fn(Option<&Path>) -> diptych::Result<Context> + 'a;

/// Lives on a device that `open` opens, whose driver is `driver`: every way to run a session, and products.
///
/// # Panics
/// If something fails that was not told to, or fails again when it is tried once more without a fault.
pub(crate) fn of_runs<'a>(driver: &'a Driver, open: &'a Open<'a>) -> Life<'a> {
    let mut life = Life { driver, open, met: Vec::new(), results: Vec::new() };
    life.all_runs();
    life
}

/// Another one: kernels that are kept on disk, images and halves, a node on the CPU, requests that share runs, a search.
///
/// # Panics
/// As [`of_runs`].
pub(crate) fn of_sessions<'a>(driver: &'a Driver, open: &'a Open<'a>) -> Life<'a> {
    let mut life = Life { driver, open, met: Vec::new(), results: Vec::new() };
    life.all_sessions();
    life
}

impl<'a> Life<'a> {
    /// Does `work`; once more if it fails, unless the device is lost.
    fn stage<T>(
        &mut self,
        stage: &'static str,
        mut work: impl FnMut() -> diptych::Result<T>,
    ) -> Result<T, Lost> {
        let error = match work() {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        assert!(self.driver.fired(), "{stage} failed without a fault: {error}");
        self.driver.disarm();
        let lost = error.is_device_lost();
        self.met.push(Met { stage, error });
        if lost {
            return Err(Lost);
        }
        match work() {
            Ok(done) => Ok(done),
            Err(again) => panic!("{stage} fails again without a fault, after {:?}: {again}", self.met),
        }
    }

    /// [`Life::stage`] for what is not of the device that is lost.
    fn anew<T>(&mut self, stage: &'static str, mut work: impl FnMut() -> diptych::Result<T>) -> T {
        match self.stage(stage, &mut work) {
            Ok(done) => done,
            Err(Lost) => work().unwrap_or_else(|again| panic!("{stage} fails again: {again}")),
        }
    }

    /// Does `work` on `context`; where the device is lost, on one that is opened again.
    fn on<T>(
        &mut self,
        stage: &'static str,
        context: &mut Context,
        mut work: impl FnMut(&Context) -> diptych::Result<T>,
    ) -> T {
        match self.stage(stage, || work(context)) {
            Ok(done) => done,
            Err(Lost) => {
                *context = context.reopen().expect("opened again");
                work(context).unwrap_or_else(|again| panic!("{stage} fails again: {again}"))
            }
        }
    }

    fn all_sessions(&mut self) {
        let open = self.open;
        let folder = tempfile::tempdir().expect("a folder");
        let mut context = self.anew("open", || open(Some(folder.path())));
        let graph = network();
        let image = pattern(IMAGE, 2);
        let session = |context: &Context, change: &dyn Fn(&mut SessionOptions)| {
            let mut options = SessionOptions::default();
            change(&mut options);
            let mut session = Session::new(context, &graph, options)?;
            Ok(bits(&session.run(&[("x", &image)])?))
        };
        let opencl = context.info().backend == Backend::OpenCl;
        let layout = if opencl { Layout::Image2d } else { Layout::C4 };
        let halves = |options: &mut SessionOptions| {
            options.precision = Precision::F16Storage;
            options.pick = Picking::Preference(vec![
                Place { layout: Some(layout), ..Place::default() },
                Place::default(),
            ]);
        };
        let first = self.on("halves", &mut context, |context| session(context, &halves));
        // From what was kept.
        let mut other = self.anew("open again", || open(Some(folder.path())));
        let again = self.on("halves, kernels kept", &mut other, |context| session(context, &halves));
        assert_eq!(first, again, "kernels that were kept");
        self.results.push(("halves", first));
        drop(other);
        let on_cpu = |options: &mut SessionOptions| options.on_cpu.extend(["exp".to_owned()]);
        let parts = self.on("a node on the CPU", &mut context, |context| session(context, &on_cpu));
        self.results.push(("a node on the CPU", parts));
        let requests = |context: &Context| {
            // One size: whether the two requests share a run depends on time, and kernels of another size may add in
            // another order.
            let options = BatchOptions { max_batch: 2, sizes: vec![2], ..BatchOptions::default() };
            let batch = Batch::new(context, &graph, options)?;
            let outputs = [2, 3].map(|seed| batch.submit([("x", pattern(IMAGE, seed))]));
            let mut found = Vec::new();
            for output in outputs {
                found.extend(bits(&output?.wait()?));
            }
            Ok(found)
        };
        let shared = self.on("requests that share runs", &mut context, requests);
        self.results.push(("requests that share runs", shared));
        self.on("a search", &mut context, |context| {
            Tuner::new(context)?.budget(Duration::from_millis(10)).tune(&graph).map(drop)
        });
    }

    fn all_runs(&mut self) {
        let open = self.open;
        let mut context = self.anew("open", || open(None));
        let graph = network();
        let options = SessionOptions { keep_graph: true, ..SessionOptions::default() };
        let built = |context: &Context| Session::new(context, &graph, options.clone());
        let mut session = match self.stage("build", || built(&context)) {
            Ok(session) => session,
            Err(Lost) => {
                context = context.reopen().expect("opened again");
                built(&context).expect("built again")
            }
        };
        let images = [pattern(IMAGE, 2), pattern(IMAGE, 3)];
        let mut targets: Vec<Vec<f32>> =
            session.outputs().iter().map(|port| vec![0.0; port.shape.elements()]).collect();
        let names: Vec<String> = session.outputs().iter().map(|port| port.name.clone()).collect();
        type Run<'r> = Box<dyn FnMut(&mut Session) -> diptych::Result<Vec<u32>> + 'r>;
        let bits_of = |targets: &[Vec<f32>]| targets.iter().flatten().map(|value| value.to_bits()).collect();
        let image = &images[0];
        let into = |session: &mut Session, targets: &mut [Vec<f32>], later: bool| {
            let mut outputs: Vec<(&str, &mut [f32])> =
                names.iter().map(String::as_str).zip(targets.iter_mut().map(Vec::as_mut_slice)).collect();
            match later {
                true => session.submit(&[("x", &*image.to_f32())])?.wait_into(&mut outputs)?,
                false => session.run_into(&[("x", image)], &mut outputs)?,
            }
            drop(outputs);
            Ok(bits_of(targets))
        };
        let mut others = targets.clone();
        let runs: [(&'static str, Run<'_>); 7] = [
            ("run", Box::new(|session| Ok(bits(&session.run(&[("x", image)])?)))),
            ("run again", Box::new(|session| Ok(bits(&session.run(&[("x", &images[1])])?)))),
            (
                "run_async",
                Box::new(|session| Ok(bits(&pollster::block_on(session.run_async(&[("x", image)]))?))),
            ),
            ("run_into", Box::new(|session| into(session, &mut targets, false))),
            ("start", Box::new(|session| into(session, &mut others, true))),
            (
                "stream",
                Box::new(|session| {
                    let frames = (0..5).map(|frame| [("x", images[frame % 2].clone())]);
                    let outputs = session.stream(frames).in_flight(3).collect::<diptych::Result<Vec<_>>>()?;
                    Ok(bits(outputs.iter().flatten()))
                }),
            ),
            ("profile", Box::new(|session| session.profile(&[("x", image)]).map(|_| Vec::new()))),
        ];
        for (stage, mut run) in runs {
            let found = match self.stage(stage, || run(&mut session)) {
                Ok(found) => found,
                Err(Lost) => {
                    context = context.reopen().expect("opened again");
                    session.rebuild(&context).expect("built again");
                    run(&mut session).expect("run again")
                }
            };
            self.results.push((stage, found));
        }
        drop(session);
        // On the device on which something failed, unless that was its end.
        for (stage, memory) in
            [("product", Memory::Device), ("product in memory that is mapped", Memory::HostVisible)]
        {
            let found = self.on(stage, &mut context, |context| product(context, memory));
            self.results.push((stage, found));
        }
    }
}

/// The results of two runs of a session that is made for them.
pub(crate) fn runs(context: &Context) -> Vec<u32> {
    let mut session = Session::new(context, &network(), SessionOptions::default()).expect("a session");
    let images = [pattern(IMAGE, 2), pattern(IMAGE, 3)];
    images.iter().flat_map(|image| bits(&session.run(&[("x", image)]).expect("a run"))).collect()
}

/// A matrix product in `memory`.
fn product(context: &Context, memory: Memory) -> diptych::Result<Vec<u32>> {
    let op = GemmOp::of_matrices(
        Shape::matrix(1, 5, 7),
        Shape::matrix(1, 7, 9),
        &Gemm::default(),
        false,
        false,
        Precision::F32,
    )?;
    let options = ProductOptions { memory, ..ProductOptions::default() };
    let product = MatrixProduct::new(context, op, None, None, options)?;
    for (operand, factor) in [(Operand::A, 0.25), (Operand::B, 0.5)] {
        product.write(operand, |data| {
            for (at, value) in data.iter_mut().enumerate() {
                *value = (at % 5) as f32 * factor;
            }
        })?;
    }
    product.run()?;
    product.read(Operand::C, |found| found.iter().map(|value| value.to_bits()).collect())
}
