// Web workers with scripts of this package.

/**
 * The worker that `make` begins, of the script `name`. A browser runs no script of another origin as a worker, such as one of a
 * network that delivers packages, but one of the page's own that imports it.
 */
export function begun(make, name) {
  try {
    return make();
  } catch (error) {
    if (error.name !== "SecurityError") {
      throw error;
    }
    const script = new Blob([`import ${JSON.stringify(new URL(name, import.meta.url).href)};`], { type: "text/javascript" });
    const address = URL.createObjectURL(script);
    const worker = new Worker(address, { type: "module" });
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
    return worker;
  }
}
