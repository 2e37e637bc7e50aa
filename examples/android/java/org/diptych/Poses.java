package org.diptych;

import android.hardware.HardwareBuffer;
import java.nio.ByteBuffer;

/**
 * Keypoints of a person in a camera's frames, found on the GPU.
 *
 * <p>Calls may come from any thread and wait for each other. Failures are RuntimeExceptions that say what was found and what
 * was wanted.
 */
public final class Poses implements AutoCloseable {
    static {
        System.loadLibrary("diptych_android");
    }

    /** How many numbers a part of the body has: x, y and score. */
    public static final int NUMBERS = 3;

    private long handle;

    /**
     * Opens the GPU. It takes seconds when an application runs for the first time, until the kernels are compiled: not on the
     * thread of the user interface.
     *
     * @param cache a folder of the application, as {@code context.getCacheDir().getPath()}
     */
    public Poses(String cache) {
        handle = open(cache);
    }

    /** The GPU and its driver, and whether it reads hardware buffers where they lie. */
    public synchronized String info() {
        return info(handle);
    }

    /**
     * The keypoints of a frame: x, y in its pixels and a score from 0 to 1, for each of 17 parts.
     *
     * @param buffer of {@code HardwareBuffer.RGBA_8888} with {@code USAGE_GPU_SAMPLED_IMAGE}, which nobody writes meanwhile
     * @param degrees what turns the frame upright, clockwise: 0, 90, 180 or 270
     */
    public synchronized float[] find(HardwareBuffer buffer, int degrees) {
        return findInBuffer(handle, buffer, degrees);
    }

    /** The same of pixels of four bytes in a direct buffer, red first, with rows {@code stride} bytes apart. */
    public synchronized float[] find(ByteBuffer pixels, int width, int height, int stride, int degrees) {
        return findInBytes(handle, pixels, width, height, stride, degrees);
    }

    @Override
    public synchronized void close() {
        free(handle);
        handle = 0;
    }

    private static native long open(String cache);

    private static native void free(long handle);

    private static native String info(long handle);

    private static native float[] findInBuffer(long handle, HardwareBuffer buffer, int degrees);

    private static native float[] findInBytes(
            long handle, ByteBuffer pixels, int width, int height, int stride, int degrees);
}
