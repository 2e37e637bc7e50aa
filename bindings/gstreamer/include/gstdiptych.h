/* The outputs of networks that diptychinfer adds to buffers as metadata.
 *
 * A program reads them where it has the buffer, in a pad's probe or from an appsink. It needs this header and not the plugin's
 * library:
 *
 *   GstDiptychTensorMeta *meta = gst_buffer_get_diptych_tensor_meta (buffer);
 *   for (guint64 i = 0; meta != NULL && i < meta->n_tensors; i++)
 *     g_print ("%s has %" G_GUINT64_FORMAT " bytes\n", meta->tensors[i].name, meta->tensors[i].size);
 */
#ifndef GST_DIPTYCH_H
#define GST_DIPTYCH_H

#include <gst/gst.h>

G_BEGIN_DECLS

/* The types of elements, with the numbers of GstTensorDataType in GStreamer 1.26 and later. */
typedef enum {
  GST_DIPTYCH_INT8 = 1,
  GST_DIPTYCH_INT16 = 2,
  GST_DIPTYCH_INT32 = 3,
  GST_DIPTYCH_INT64 = 4,
  GST_DIPTYCH_UINT8 = 6,
  GST_DIPTYCH_UINT16 = 7,
  GST_DIPTYCH_UINT32 = 8,
  GST_DIPTYCH_FLOAT16 = 10,
  GST_DIPTYCH_FLOAT32 = 11,
  GST_DIPTYCH_BOOL = 15, /* a byte, 0 or 1 */
} GstDiptychType;

/* An output of a network, for one frame. The elements lie in rows, the last dimension's next to each other. */
typedef struct {
  const gchar *name;    /* in the model's file */
  gint32 type;          /* GstDiptychType */
  guint32 rank;         /* how many dimensions */
  const guint64 *dims;
  const void *data;
  guint64 size;         /* bytes at data */
} GstDiptychTensor;

/* All of it belongs to the metadata: it lives as long as the buffer, and nobody may change it. */
typedef struct {
  GstMeta meta;
  const gchar *network; /* the name of the element that ran the network */
  guint32 input_width, input_height; /* the network's picture, in pixels */
  guint32 frame_width, frame_height;
  /* (x, y) in the network's picture is (t[0] x + t[1] y + t[2], t[3] x + t[4] y + t[5]) in the frame. Pixel (i, j) covers
   * i..i+1 and j..j+1 in both. */
  gdouble to_frame[6];
  guint64 n_tensors;
  const GstDiptychTensor *tensors;
  /*< private >*/
  const void *shared;
} GstDiptychTensorMeta;

/* The first of such metadata that the buffer has; NULL if it has none. gst_buffer_iterate_meta_filtered() gives all. */
static inline GstDiptychTensorMeta *
gst_buffer_get_diptych_tensor_meta (GstBuffer *buffer)
{
  GType api = g_type_from_name ("GstDiptychTensorMetaAPI");
  return api == 0 ? NULL : (GstDiptychTensorMeta *) gst_buffer_get_meta (buffer, api);
}

G_END_DECLS

#endif
